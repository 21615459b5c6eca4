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

#define UNTOUCHED_BYTE	0xa5

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

static void
check_valid(const char *text, uint32_t node_id, uint32_t node_id_size,
			uint64_t node_prev)
{
	NodeSpec	spec;

	harness.note = text;
	memset(&spec, UNTOUCHED_BYTE, sizeof(spec));
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
	memset(&spec, UNTOUCHED_BYTE, sizeof(spec));
	memset(&untouched, UNTOUCHED_BYTE, sizeof(untouched));
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
	/* the numbers of a node_prev were computed elsewhere */
	static const struct
	{
		const char *text;
		uint32_t	node_id;
		uint32_t	node_id_size;
		uint64_t	node_prev;
	}			table[] =
	{
		/* the specification's examples */
		{"42/8", 42, 8, 0},
		{"0xb00/12", 0xb00, 12, 0},
		{"0u2r85hm2pt3/16", 11001, 16, UINT64_C(109964681944955175)},

		/* decimal */
		{"8388607/23", 8388607, 23, 0},
		{"00000042/008", 42, 8, 0},
		{"0/1", 0, 1, 0},
		{"010/08", 10, 8, 0},

		/* hexadecimal */
		{"0X3bcDEF/23", 0x3bcdef, 23, 0},
		{"0x00002a/8", 42, 8, 0},
		{"0x0/1", 0, 1, 0},

		/* node_prev, whatever its digits look like */
		{"0U2R85hm2pT3/016", 11001, 16, UINT64_C(109964681944955175)},
		{"0u2pf62ji4b9/1", 0, 1, UINT64_C(109959589539758421)},
		{"0u2pf62ji4b9/23", 1384618, 23, UINT64_C(109959589539758421)},
		{"123456789012/16", 44940, 16, UINT64_C(139250390350662758)},
		{"0x2pf62ji4b9/16", 23105, 16, UINT64_C(120928064859947349)},
		{"0xabcdef0123/12", 1395, 12, UINT64_C(121700829837605979)},
		{"zzzzzzzzzzzz/16", 65535, 16, UINT64_C(4738381338321616895)},

		/* of timestamp 0, it names a node and nothing to continue after */
		{"000000000000/16", 0, 16, 0},
		{"000000000002/23", 1, 23, 0},
		{"00000009zldr/1", 1, 1, 0},
		{"00000009zlds/1", 0, 1, UINT64_C(16777216)},
	};

	for (size_t i = 0; i < LENGTH_OF(table); i++)
		check_valid(table[i].text, table[i].node_id, table[i].node_id_size, table[i].node_prev);
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

/* The largest node_id of each size fits, the next one does not; a node_prev's always does. */
static void
limits_of_each_size(void)
{
	static const char *const formats[] = {"%u/%u", "%08u/%03u", "0x%x/%u", "0X%06X/%02u"};

	for (unsigned int size = 1; size <= 23; size++)
	{
		unsigned int count = 1U << size;
		char		text[32];

		for (size_t i = 0; i < LENGTH_OF(formats); i++)
		{
			snprintf(text, sizeof(text), formats[i], count - 1, size);
			check_valid(text, count - 1, size, 0);
			snprintf(text, sizeof(text), formats[i], count, size);
			check_invalid(text, NODE_SPEC_BAD_NODE_ID);
		}
		snprintf(text, sizeof(text), "zzzzzzzzzzzz/%u", size);
		check_valid(text, count - 1, size, SCRU64_MAX_ID);
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

/* What is written is read back as it was. */
static void
check_round_trip(NodeSpec spec, const char *left)
{
	char	   *written = exact_alloc(NODE_SPEC_BUFLEN, 1);
	char		expected[32];

	snprintf(expected, sizeof(expected), "%.12s/%" PRIu32, left, spec.node.node_id_size);
	memset(written, UNTOUCHED_BYTE, NODE_SPEC_BUFLEN);
	node_spec_format(&spec, written);
	CHECK_TEXT(written, expected, strlen(expected) + 1);
	check_valid(expected, spec.node.node_id, spec.node.node_id_size, spec.node_prev);
	exact_free(written, 1);
}

static void
round_trips(void)
{
	Random		random = random_make(2);

	for (uint32_t size = 1; size <= 23; size++)
	{
		uint32_t	count = UINT32_C(1) << size;

		for (int i = 0; i < 1000; i++)
		{
			NodeSpec	spec = {.node = {.node_id_size = size}};
			char		left[32];

			spec.node.node_id = i == 0 ? count - 1 : (uint32_t) random_below(&random, count);
			snprintf(left, sizeof(left), "%" PRIu32, spec.node.node_id);
			check_round_trip(spec, left);
			CHECK_UINT(node_of_key(node_key(spec.node)).node_id, ==, spec.node.node_id);
			CHECK_UINT(node_of_key(node_key(spec.node)).node_id_size, ==, size);

			/* from timestamp 1 on */
			spec.node_prev = i == 0 ? IDS_PER_TICK : i == 1 ? SCRU64_MAX_ID :
				IDS_PER_TICK + random_length(&random, 63) % (SCRU64_MAX_ID - IDS_PER_TICK + 1);
			spec.node.node_id = (uint32_t) (spec.node_prev % IDS_PER_TICK / (IDS_PER_TICK / count));
			reference_encode(spec.node_prev, left);
			check_round_trip(spec, left);
		}
	}
}

/* Nodes overlap if they share a node_ctr: tried for each of six bits. */
static void
overlap_of_small_nodes(void)
{
	for (uint32_t a_size = 1; a_size <= 6; a_size++)
		for (uint32_t b_size = 1; b_size <= 6; b_size++)
			for (uint32_t a_id = 0; a_id >> a_size == 0; a_id++)
				for (uint32_t b_id = 0; b_id >> b_size == 0; b_id++)
				{
					bool		overlap = false;

					for (uint32_t bits = 0; bits < 64; bits++)
						overlap |= bits >> (6 - a_size) == a_id && bits >> (6 - b_size) == b_id;
					if (!CHECK(nodes_overlap((Scru64Node) {a_id, a_size}, (Scru64Node) {b_id, b_size}) == overlap))
						TELL("nodes %" PRIu32 "/%" PRIu32 " and %" PRIu32 "/%" PRIu32, a_id, a_size, b_id, b_size);
				}
}

static void
overlap_of_any_size(void)
{
	for (uint32_t size = 1; size <= 23; size++)
	{
		Scru64Node	first = {0, size};
		Scru64Node	last = {(UINT32_C(1) << size) - 1, size};

		CHECK(nodes_overlap(first, first));
		CHECK(nodes_overlap(last, last));
		CHECK(!nodes_overlap(first, last));
		CHECK(nodes_overlap(last, (Scru64Node) {8388607, 23}));
		CHECK(!nodes_overlap(last, (Scru64Node) {4194303, 23}));
	}

	/* the examples of the contract */
	CHECK(nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2a0, 12}));
	CHECK(!nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2b0, 12}));
	CHECK(nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x2af, 12}));
	CHECK(!nodes_overlap((Scru64Node) {42, 8}, (Scru64Node) {0x29f, 12}));
}

int
main(void)
{
	RUN(valid_specs);
	RUN(invalid_specs);
	RUN(limits_of_each_size);
	RUN(one_byte_changed);
	RUN(round_trips);
	RUN(overlap_of_small_nodes);
	RUN(overlap_of_any_size);
	return harness_finish();
}
