/*-------------------------------------------------------------------------
 *
 * test_node_spec.c
 *		Unit tests of node_spec.c: parse, format, overlap.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/node_spec.h"

#include "pure/base36.h"
#include "harness.h"
#include "reference.h"

#define UNTOUCHED	0xa5

/* Parse a copy that ends where its block of memory ends. */
static NodeSpecStatus
parse_exact(const char *text, NodeSpec *spec)
{
	size_t		size = strlen(text) + 1;
	char	   *copy = exact_alloc(size, 1);
	NodeSpecStatus status;

	memcpy(copy, text, size);
	status = node_spec_parse(copy, spec);
	exact_free(copy, 1);
	return status;
}

/* Format into memory of NODE_SPEC_BUFLEN bytes; text has as many. */
static void
format_exact(const NodeSpec *spec, char *text)
{
	char	   *exact = exact_alloc(NODE_SPEC_BUFLEN, 1);

	memset(exact, UNTOUCHED, NODE_SPEC_BUFLEN);
	node_spec_format(spec, exact);
	memcpy(text, exact, NODE_SPEC_BUFLEN);
	exact_free(exact, 1);
	CHECK(memchr(text, '\0', NODE_SPEC_BUFLEN) != NULL);
	text[NODE_SPEC_BUFLEN - 1] = '\0';
}

static void
check_valid(const char *text, uint32_t node_id, uint32_t node_id_size,
			uint64_t node_prev)
{
	NodeSpec	spec;

	harness.note = text;
	memset(&spec, UNTOUCHED, sizeof(spec));
	CHECK_UINT(parse_exact(text, &spec), ==, NODE_SPEC_OK);
	CHECK_UINT(spec.node.node_id, ==, node_id);
	CHECK_UINT(spec.node.node_id_size, ==, node_id_size);
	CHECK_UINT(spec.node_prev, ==, node_prev);
	harness.note = NULL;
}

static void
check_invalid(const char *text, NodeSpecStatus status)
{
	NodeSpec	spec;
	NodeSpec	untouched;

	harness.note = text;
	memset(&spec, UNTOUCHED, sizeof(spec));
	memset(&untouched, UNTOUCHED, sizeof(untouched));
	CHECK_UINT(parse_exact(text, &spec), ==, status);
	CHECK(memcmp(&spec, &untouched, sizeof(spec)) == 0);
	harness.note = NULL;
}

/* Check that the parser makes of a text what the reference does. */
static NodeSpecStatus
check_like_reference(const char *text)
{
	NodeSpec	expected;
	NodeSpecStatus status = reference_parse(text, &expected);

	if (status == NODE_SPEC_OK)
		check_valid(text, expected.node.node_id, expected.node.node_id_size,
					expected.node_prev);
	else
		check_invalid(text, status);
	return status;
}

static void
valid_specs(void)
{
	static const struct
	{
		const char *text;
		uint32_t	node_id;
		uint32_t	node_id_size;
	}			table[] =
	{
		/* decimal */
		{"42/8", 42, 8},
		{"0/1", 0, 1},
		{"1/1", 1, 1},
		{"0/23", 0, 23},
		{"255/8", 255, 8},
		{"8388607/23", 8388607, 23},
		{"08388607/23", 8388607, 23},
		{"00000042/8", 42, 8},
		{"00000000/8", 0, 8},
		{"0/8", 0, 8},
		{"00/8", 0, 8},
		{"42/08", 42, 8},
		{"42/008", 42, 8},
		{"42/016", 42, 16},
		{"42/023", 42, 23},
		{"0/001", 0, 1},
		{"010/8", 10, 8},
		{"9/9", 9, 9},

		/* hexadecimal */
		{"0xb00/12", 0xb00, 12},
		{"0XB00/12", 0xb00, 12},
		{"0xB00/12", 0xb00, 12},
		{"0Xb00/12", 0xb00, 12},
		{"0x3bcdef/23", 0x3bcdef, 23},
		{"0X3BCDEF/23", 0x3bcdef, 23},
		{"0x7fffff/23", 0x7fffff, 23},
		{"0X7FFFFF/23", 0x7fffff, 23},
		{"0x0/1", 0, 1},
		{"0x1/1", 1, 1},
		{"0x00002a/8", 42, 8},
		{"0x000000/1", 0, 1},
		{"0xff/8", 255, 8},
		{"0x10/5", 16, 5},
		{"0x9/4", 9, 4},
		{"0xa/4", 10, 4},
		{"0xF/4", 15, 4},
	};

	for (size_t i = 0; i < LENGTH_OF(table); i++)
		check_valid(table[i].text, table[i].node_id, table[i].node_id_size, 0);
}

static void
valid_specs_with_node_prev(void)
{
	/* the numbers were computed elsewhere */
	static const struct
	{
		const char *text;
		uint32_t	node_id;
		uint32_t	node_id_size;
		uint64_t	node_prev;
	}			table[] =
	{
		{"0u2r85hm2pt3/16", 11001, 16, UINT64_C(109964681944955175)},
		{"0U2R85HM2PT3/16", 11001, 16, UINT64_C(109964681944955175)},
		{"0u2R85hm2pT3/016", 11001, 16, UINT64_C(109964681944955175)},
		{"0u2pf62ji4b9/1", 0, 1, UINT64_C(109959589539758421)},
		{"0u2pf62ji4b9/8", 42, 8, UINT64_C(109959589539758421)},
		{"0u2pf62ji4b9/23", 1384618, 23, UINT64_C(109959589539758421)},
		{"0u375nxqh5cq/12", 678, 12, UINT64_C(110009624767914842)},
		{"123456789012/16", 44940, 16, UINT64_C(139250390350662758)},
		{"999999999999/23", 2157070, 23, UINT64_C(1218440915568415773)},
		{"000123456789/10", 167, 10, UINT64_C(2984619134745)},
		{"0x2pf62ji4b9/16", 23105, 16, UINT64_C(120928064859947349)},
		{"0xabcdef0123/12", 1395, 12, UINT64_C(121700829837605979)},
		{"0X1234567890/1", 1, 1, UINT64_C(120760674810929028)},
		{"00x123456789/9", 411, 9, UINT64_C(3354463189192473)},
		{"zzzzzzzzzzzz/1", 1, 1, UINT64_C(4738381338321616895)},
		{"zzzzzzzzzzzz/16", 65535, 16, UINT64_C(4738381338321616895)},
		{"ZZZZZZZZZZZZ/23", 8388607, 23, UINT64_C(4738381338321616895)},
		{"00000009zlds/8", 0, 8, UINT64_C(16777216)},
		{"0000000jz7hj/8", 0, 8, UINT64_C(33555367)},
		{"abcdefabcdef/7", 89, 7, UINT64_C(1357691305545929175)},
	};

	for (size_t i = 0; i < LENGTH_OF(table); i++)
		check_valid(table[i].text, table[i].node_id, table[i].node_id_size,
					table[i].node_prev);
}

/* A node_prev of timestamp 0 names a node and nothing to continue after. */
static void
node_prev_of_timestamp_0(void)
{
	check_valid("000000000000/16", 0, 16, 0);
	check_valid("000000000001/23", 0, 23, 0);
	check_valid("000000000002/23", 1, 23, 0);
	check_valid("00000009zldr/1", 1, 1, 0);
	check_valid("00000009ZLDR/23", 8388607, 23, 0);

	/* the one after it is of timestamp 1, counter and node_id 0 */
	check_valid("00000009zlds/1", 0, 1, UINT64_C(16777216));
	check_valid("00000009zlds/23", 0, 23, UINT64_C(16777216));
}

static void
invalid_specs(void)
{
	static const char *const bad_syntax[] = {
		/* parts */
		"", "/", "//", "8", "42", "0xb00", "0u2r85hm2pt3", "/8", "42/", "0x2a/",
		"0u2r85hm2pt3/", "42/8/", "/42/8", "42//8", "42/8/1", "42/8//",
		"42\\8", "42:8", "42,8", "42.8", "42-8", "42 8", "428",

		/* signs */
		"+42/8", "-42/8", "42/+8", "42/-8", "-0/8", "+0/8", "42/-0", "0x-1/8",
		"0x+1/8", "+0x1/8", "-0x1/8", "+u2r85hm2pt3/16", "-u2r85hm2pt3/16",
		"+0u2r85hm2pt3/16", "0u2r85hm2pt3/+16", "--1/8",

		/* blanks */
		" ", " 42/8", "42 /8", "42/ 8", "42/8 ", "4 2/8", "42/1 6", "\t42/8",
		"42/8\t", "42/8\n", "\n42/8", "42/8\r\n", "42/8\v", "42/8\f",
		" 0u2r85hm2pt3/16", "0u2r85hm2pt3 /16", "0u2r85 hm2pt/16",
		" u2r85hm2pt3/16", "0u2r85hm2pt /16", "0u2r85hm2pt3/ 16", "0x 1/8",
		"0 x1/8", " /8", "42/ ", "0x1 /8",

		/* digits of another radix */
		"2a/8", "a/8", "f/8", "x2a/8", "ff/8", "0b11/8", "0o17/8", "0x2g/8",
		"0xg/8", "0xz/8", "0x-/8", "0X/8", "0x/8", "x/8", "X1/8", "00x1/8",
		"0xx1/8", "0x0x1/8", "0xX1/8", "1x1/8", "42/0x8", "42/x", "42/a",
		"42/8a", "42/a8", "42/f", "42/0xf", "42h/8", "1e1/8", "1.0/8",
		"4_2/8", "42/1_6", "4'2/8", "42u/8", "42/8u", "42/8.0", "1/2e0",
		":/8", "0/:", "/:/", "@/8", "`/8", "0x@/8", "0x`/8", "0xG/8", "0x:/8",
		"./8", "0/.",

		/* length of the left side: 9 to 11, and 13 and more */
		"000000042/8", "0000000042/8", "00000000042/8", "0000000000042/8",
		"0x000002a/8", "0x0000002a/8", "0x00000002a/8", "0x00000000002a/8",
		"u2r85hm2p/16", "0u2r85hm2p/16", "0u2r85hm2pt/16", "00u2r85hm2pt3/16",
		"0u2r85hm2pt33/16", "0u2r85hm2pt3aaaaaaaaaaaa/16",
		"000000000000000000000000/8", "999999999/23", "100000000/23",
		"4294967338/8", "18446744073709551658/8", "340282366920938463463/8",

		/* twelve characters, not all of them digits */
		"0u2r85hm2pt_/16", "_u2r85hm2pt3/16", "0u2r85_m2pt3/16",
		"0u2r85hm2pt-/16", "0u2r85hm2pt./16", "............/16",
		"{u2r85hm2pt3/16", "0u2r85hm2pt@/16", "0u2r85hm2pt`/16",
		"0u2r85hm2pt[/16", "0u2r85hm2pt:/16",

		/* length of the right side */
		"42/0008", "42/0000", "42/1000", "42/0016", "42/00000008",
		"42/4294967304", "42/18446744073709551624", "0u2r85hm2pt3/0016",
		"42/000000000000",

		/* beyond ASCII */
		"\xc3\xa9/8", "42/\xc3\xa9", "42\xff/8", "42/8\xff", "\37742/8",
		"\xef\xbc\x94\xef\xbc\x92/8", "42/\xef\xbc\x98", "42\357\274\2178",
		"0u2r85hm2pt\xb3/16", "\xb0u2r85hm2pt3/16", "42/\xb8", "\xb4\xb2/8",
		"42\xc2\xa0/8", "\357\273\27742/8", "\x80/8", "\xd9\xa4\xd9\xa2/8",
		"0u2r85hm2p\xc3\xa9/16",

		/* bad in more than one way: what is no node spec has no size */
		"a/0", "a/24", "000000256/24", "/0", "256/0000", "-1/24",
	};
	static const char *const bad_size[] = {
		"42/0", "42/00", "42/000", "42/24", "42/024", "42/25", "42/31",
		"42/32", "42/33", "42/64", "42/99", "42/100", "42/255", "42/256",
		"42/257", "42/264", "42/999", "0/0", "0/24", "1/24", "0x2a/0",
		"0x2a/24", "0XFFFFFF/24", "0u2r85hm2pt3/0", "0u2r85hm2pt3/24",
		"0u2r85hm2pt3/32", "0u2r85hm2pt3/256", "0u2r85hm2pt3/999",
		"zzzzzzzzzzzz/0", "000000000000/24", "000000000000/0",

		/* which node_ids fit is not known without a size */
		"99999999/0", "99999999/24", "256/264", "0xffffff/40",
	};
	static const char *const bad_node_id[] = {
		"2/1", "3/1", "4/2", "256/8", "257/8", "300/8", "4096/12", "65536/16",
		"8388608/23", "08388608/23", "8388609/23", "9999999/23",
		"16777216/23", "16777258/23", "99999999/23", "99999999/1",
		"0x2/1", "0x100/8", "0X100/8", "0x12a/8", "0x1000/12", "0x800000/23",
		"0xffffff/23", "0XFFFFFF/1", "0x000100/8", "00000256/8", "256/008",
	};

	for (size_t i = 0; i < LENGTH_OF(bad_syntax); i++)
		check_invalid(bad_syntax[i], NODE_SPEC_BAD_SYNTAX);
	for (size_t i = 0; i < LENGTH_OF(bad_size); i++)
		check_invalid(bad_size[i], NODE_SPEC_BAD_SIZE);
	for (size_t i = 0; i < LENGTH_OF(bad_node_id); i++)
		check_invalid(bad_node_id[i], NODE_SPEC_BAD_NODE_ID);
}

/* The largest node_id of each size fits, the next one does not. */
static void
limits_of_each_size(void)
{
	for (unsigned int size = 1; size <= 23; size++)
	{
		unsigned int count = 1U << size;
		char		text[32];

		snprintf(text, sizeof(text), "%u/%u", count - 1, size);
		check_valid(text, count - 1, size, 0);
		snprintf(text, sizeof(text), "%08u/%03u", count - 1, size);
		check_valid(text, count - 1, size, 0);
		snprintf(text, sizeof(text), "0x%x/%u", count - 1, size);
		check_valid(text, count - 1, size, 0);
		snprintf(text, sizeof(text), "0X%06X/%02u", count - 1, size);
		check_valid(text, count - 1, size, 0);
		snprintf(text, sizeof(text), "%u/%u", 0U, size);
		check_valid(text, 0, size, 0);

		snprintf(text, sizeof(text), "%u/%u", count, size);
		check_invalid(text, NODE_SPEC_BAD_NODE_ID);
		snprintf(text, sizeof(text), "%08u/%03u", count, size);
		check_invalid(text, NODE_SPEC_BAD_NODE_ID);
		snprintf(text, sizeof(text), "0x%x/%u", count, size);
		check_invalid(text, NODE_SPEC_BAD_NODE_ID);

		/* a node_prev's node_id always fits */
		snprintf(text, sizeof(text), "zzzzzzzzzzzz/%u", size);
		check_valid(text, count - 1, size, SCRU64_MAX_ID);
	}
}

/* Every right side of up to three digits. */
static void
every_size(void)
{
	static const char *const formats[] = {
		"0/%u", "0/%02u", "0/%03u", "0x0/%u", "0u2r85hm2pt3/%u",
		"0u2r85hm2pt3/%03u"
	};

	for (unsigned int size = 0; size <= 1100; size++)
		for (size_t i = 0; i < LENGTH_OF(formats); i++)
		{
			char		text[32];

			snprintf(text, sizeof(text), formats[i], size);
			check_like_reference(text);
		}
}

static const char *const seeds[] = {
	"42/8", "0/1", "8388607/23", "00000042/008", "0xb00/12", "0X7FFFFF/23",
	"0u2r85hm2pt3/16", "123456789012/16", "0x2pf62ji4b9/16", "256/8", "42/24",
	"zzzzzzzzzzzz/1", "/", ""
};

/* Each byte put into, put over, and taken out of each place of some specs. */
static void
one_byte_changed(void)
{
	for (size_t i = 0; i < LENGTH_OF(seeds); i++)
	{
		size_t		len = strlen(seeds[i]);

		for (size_t position = 0; position <= len; position++)
		{
			const char *rest = seeds[i] + position;
			char		text[32];

			for (int byte = 0; byte < 256; byte++)
			{
				snprintf(text, sizeof(text), "%.*s%c%s", (int) position,
						 seeds[i], byte, rest);
				check_like_reference(text);
				if (position < len)
				{
					snprintf(text, sizeof(text), "%.*s%c%s", (int) position,
							 seeds[i], byte, rest + 1);
					check_like_reference(text);
				}
			}
			if (position < len)
			{
				snprintf(text, sizeof(text), "%.*s%s", (int) position,
						 seeds[i], rest + 1);
				check_like_reference(text);
			}
			/* cut off */
			snprintf(text, sizeof(text), "%.*s", (int) position, seeds[i]);
			check_like_reference(text);
		}
	}
}

/* Texts of characters that occur in node specs, many of them valid. */
static void
random_specs(void)
{
	static const char *const alphabets[] = {
		"0123456789", "0123456789abcdefABCDEF", "0123456789xX/ +-azAZ"
	};
	Random		random = random_make(1);
	uint64_t	counts[NODE_SPEC_BAD_NODE_ID + 1] = {0};

	for (int i = 0; i < 400000; i++)
	{
		const char *alphabet = alphabets[random_below(&random, 3)];
		size_t		alphabet_len = strlen(alphabet);
		size_t		left_len = (size_t) random_below(&random, 15);
		size_t		right_len = (size_t) random_below(&random, 5);
		char		text[32];
		size_t		len = 0;

		if (random_below(&random, 4) == 0)
			left_len = 12;
		for (size_t j = 0; j < left_len; j++)
			text[len++] = alphabet[random_below(&random, alphabet_len)];
		if (left_len > 1 && random_below(&random, 3) == 0)
			memcpy(text, i % 2 == 0 ? "0x" : "0X", 2);
		text[len++] = '/';
		if (random_below(&random, 4) != 0)
			alphabet_len = 3;	/* sizes that tend to be valid */
		for (size_t j = 0; j < right_len; j++)
			text[len++] = alphabet[random_below(&random, alphabet_len)];
		text[len] = '\0';
		counts[check_like_reference(text)]++;
	}

	/* each status came up, often */
	for (size_t i = 0; i < LENGTH_OF(counts); i++)
		CHECK_UINT(counts[i], >, UINT64_C(10000));
}

/* What is written is read back as it was. */
static void
check_round_trip(const NodeSpec *spec, const char *expected)
{
	char		text[NODE_SPEC_BUFLEN];

	format_exact(spec, text);
	CHECK_UINT(strlen(text), ==, strlen(expected));
	CHECK_TEXT(text, expected, strlen(expected) + 1);
	check_valid(text, spec->node.node_id, spec->node.node_id_size,
				spec->node_prev);
}

static void
round_trips(void)
{
	Random		random = random_make(2);

	for (uint32_t size = 1; size <= 23; size++)
	{
		uint32_t	count = UINT32_C(1) << size;

		for (int i = 0; i < 5000; i++)
		{
			NodeSpec	spec = {.node = {.node_id_size = size}};
			char		expected[32];

			/* decimal */
			spec.node.node_id = i == 0 ? 0 : i == 1 ? count - 1 :
				(uint32_t) random_below(&random, count);
			snprintf(expected, sizeof(expected), "%" PRIu32 "/%" PRIu32,
					 spec.node.node_id, size);
			check_round_trip(&spec, expected);

			/* node_prev: the ends, then any ID from timestamp 1 on */
			spec.node_prev = i == 0 ? UINT64_C(16777216) :
				i == 1 ? SCRU64_MAX_ID :
				16777216 + random_length(&random, 63) %
				(SCRU64_MAX_ID - 16777215);
			spec.node.node_id = (uint32_t) (spec.node_prev % 16777216) /
				(UINT32_C(16777216) / count);
			reference_encode(spec.node_prev, expected);
			snprintf(expected + 12, sizeof(expected) - 12, "/%" PRIu32, size);
			check_round_trip(&spec, expected);
		}
	}
}

/* By definition: do the node_ctrs of two nodes intersect? */
static bool
share_node_ctrs(Scru64Node a, Scru64Node b)
{
	uint32_t	a_share = UINT32_C(16777216) / (UINT32_C(1) << a.node_id_size);
	uint32_t	b_share = UINT32_C(16777216) / (UINT32_C(1) << b.node_id_size);
	uint32_t	a_first = a.node_id * a_share;
	uint32_t	b_first = b.node_id * b_share;

	return a_first < b_first + b_share && b_first < a_first + a_share;
}

static bool
check_overlap(Scru64Node a, Scru64Node b)
{
	bool		overlap = share_node_ctrs(a, b);
	bool		passed;

	passed = CHECK(nodes_overlap(a, b) == overlap);
	passed &= CHECK(nodes_overlap(b, a) == overlap);
	if (!passed)
		TELL("nodes %" PRIu32 "/%" PRIu32 " and %" PRIu32 "/%" PRIu32,
			 a.node_id, a.node_id_size, b.node_id, b.node_id_size);
	return overlap;
}

static void
overlap_of_small_nodes(void)
{
	for (uint32_t a_size = 1; a_size <= 6; a_size++)
		for (uint32_t b_size = 1; b_size <= 6; b_size++)
			for (uint32_t a_id = 0; a_id >> a_size == 0; a_id++)
				for (uint32_t b_id = 0; b_id >> b_size == 0; b_id++)
				{
					Scru64Node	a = {a_id, a_size};
					Scru64Node	b = {b_id, b_size};

					check_overlap(a, b);
				}
}

static void
overlap_of_random_nodes(void)
{
	Random		random = random_make(3);
	uint64_t	overlaps = 0;
	const int	pairs = 300000;

	for (int i = 0; i < pairs; i++)
	{
		Scru64Node	a;
		Scru64Node	b;

		a.node_id_size = 1 + (uint32_t) random_below(&random, 23);
		a.node_id = (uint32_t) random_below(&random, UINT64_C(1) << a.node_id_size);
		b.node_id_size = 1 + (uint32_t) random_below(&random, 23);
		b.node_id = (uint32_t) random_below(&random, UINT64_C(1) << b.node_id_size);

		/* two times in three the prefix, or one bit off it */
		if (i % 3 != 0 && b.node_id_size <= a.node_id_size)
		{
			b.node_id = a.node_id >> (a.node_id_size - b.node_id_size);
			if (i % 3 == 2)
				b.node_id ^= UINT32_C(1) << random_below(&random, b.node_id_size);
		}
		overlaps += check_overlap(a, b) ? 1 : 0;
	}

	/* both answers came up, often */
	CHECK_UINT(overlaps, >, (uint64_t) pairs / 10);
	CHECK_UINT(overlaps, <, (uint64_t) pairs / 2);
}

static void
node_overlaps_itself(void)
{
	for (uint32_t size = 1; size <= 23; size++)
	{
		Scru64Node	first = {0, size};
		Scru64Node	last = {(UINT32_C(1) << size) - 1, size};

		CHECK(nodes_overlap(first, first));
		CHECK(nodes_overlap(last, last));
		CHECK(!nodes_overlap(first, last));
	}

	/* the examples of the contract */
	CHECK(nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2a0, 12}));
	CHECK(!nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2b0, 12}));
	CHECK(nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2af, 12}));
	CHECK(!nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x29f, 12}));
	CHECK(nodes_overlap((Scru64Node) {0, 8}, (Scru64Node) {0, 9}));
}

int
main(void)
{
	RUN(valid_specs);
	RUN(valid_specs_with_node_prev);
	RUN(node_prev_of_timestamp_0);
	RUN(invalid_specs);
	RUN(limits_of_each_size);
	RUN(every_size);
	RUN(one_byte_changed);
	RUN(random_specs);
	RUN(round_trips);
	RUN(overlap_of_small_nodes);
	RUN(overlap_of_random_nodes);
	RUN(node_overlaps_itself);
	return harness_finish();
}
