/*-------------------------------------------------------------------------
 *
 * test_base36.c
 *		Unit tests of base36.c: the text codec.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/base36.h"

#include "harness.h"
#include "reference.h"
#include "pure/scru64.h"

#define UNTOUCHED	UINT64_C(0xa5a5a5a5a5a5a5a5)

/* Decode a copy that ends where its block of memory ends. */
static bool
decode_exact(const char *text, size_t len, size_t lead, uint64_t *id)
{
	char	   *copy = exact_alloc(len, lead);
	bool		valid;

	memcpy(copy, text, len);
	valid = base36_decode(copy, len, id);
	exact_free(copy, lead);
	return valid;
}

/* Encode into memory of twelve bytes. */
static void
encode_exact(uint64_t id, char *text)
{
	char	   *exact = exact_alloc(BASE36_DIGITS, 8);

	memset(exact, 0, BASE36_DIGITS);
	base36_encode(id, exact);
	memcpy(text, exact, BASE36_DIGITS);
	exact_free(exact, 8);
}

/* Check that the codec makes of twelve bytes what the reference does. */
static void
check_decode(const char *text, size_t lead)
{
	uint64_t	id = UNTOUCHED;
	uint64_t	expected = UNTOUCHED;
	bool		valid = reference_decode(text, BASE36_DIGITS, &expected);
	bool		passed;

	passed = CHECK(decode_exact(text, BASE36_DIGITS, lead, &id) == valid);
	passed &= CHECK_UINT(id, ==, expected);
	if (!passed && harness.failures <= HARNESS_MAX_PRINTED)
		harness_say_text("text", text, BASE36_DIGITS);
}

/* Check both directions for a value. */
static void
check_value(uint64_t id)
{
	char		text[BASE36_DIGITS];
	char		expected[BASE36_DIGITS];
	uint64_t	read = UNTOUCHED;
	bool		passed;

	reference_encode(id, expected);
	encode_exact(id, text);
	passed = CHECK_TEXT(text, expected, BASE36_DIGITS);
	passed &= CHECK(decode_exact(expected, BASE36_DIGITS, 8, &read));
	passed &= CHECK_UINT(read, ==, id);
	if (!passed)
		TELL("id %" PRIu64, id);
}

static void
known_values(void)
{
	static const struct
	{
		uint64_t	id;
		const char *text;		/* as it is read */
		const char *lower;		/* as it is written */
	}			table[] =
	{
		{UINT64_C(109959589539758421), "0u2pf62ji4b9", "0u2pf62ji4b9"},
		{UINT64_C(109959589539758421), "0U2PF62JI4B9", "0u2pf62ji4b9"},
		{UINT64_C(109959589539758421), "0u2Pf62jI4B9", "0u2pf62ji4b9"},
		{UINT64_C(110009624767914842), "0U375NXQH5CQ", "0u375nxqh5cq"},
		{UINT64_C(110009624767914842), "0u375nxqh5cq", "0u375nxqh5cq"},
		{UINT64_C(0), "000000000000", "000000000000"},
		{UINT64_C(1), "000000000001", "000000000001"},
		{UINT64_C(35), "00000000000Z", "00000000000z"},
		{UINT64_C(36), "000000000010", "000000000010"},
		{UINT64_C(1295), "0000000000zz", "0000000000zz"},
		{UINT64_C(1296), "000000000100", "000000000100"},
		{UINT64_C(16777215), "00000009zldr", "00000009zldr"},
		{UINT64_C(16777216), "00000009zlds", "00000009zlds"},
		{UINT64_C(2176782335), "000000zzzzzz", "000000zzzzzz"},
		{UINT64_C(2176782336), "000001000000", "000001000000"},
		{UINT64_C(4294967296), "000001z141z4", "000001z141z4"},
		{UINT64_C(9007199254740992), "02gosa7pa2gw", "02gosa7pa2gw"},
		{UINT64_C(4611686018427387904), "z1ci99jj7474", "z1ci99jj7474"},
		{UINT64_C(4738381336144834560), "zzzzzz000000", "zzzzzz000000"},
		{UINT64_C(4738381338321616894), "zzzzzzzzzzzy", "zzzzzzzzzzzy"},
		{UINT64_C(4738381338321616895), "zzzzzzzzzzzz", "zzzzzzzzzzzz"},
		{UINT64_C(4738381338321616895), "ZZZZZZZZZZZZ", "zzzzzzzzzzzz"},
	};

	for (size_t i = 0; i < LENGTH_OF(table); i++)
	{
		char		text[BASE36_DIGITS];
		uint64_t	id = UNTOUCHED;

		harness.note = table[i].text;
		CHECK(decode_exact(table[i].text, strlen(table[i].text), 8, &id));
		CHECK_UINT(id, ==, table[i].id);
		encode_exact(table[i].id, text);
		CHECK_TEXT(text, table[i].lower, BASE36_DIGITS);
	}
}

/* Every digit at every position, all other digits being 0 and being z. */
static void
single_digits(void)
{
	for (int position = 0; position < BASE36_DIGITS; position++)
	{
		uint64_t	power = reference_power(BASE36_DIGITS - 1 - position);

		for (unsigned int digit = 0; digit < 36; digit++)
		{
			uint64_t	ids[] = {digit * power,
			SCRU64_MAX_ID - digit * power};

			for (size_t i = 0; i < LENGTH_OF(ids); i++)
			{
				char		text[BASE36_DIGITS];
				char		expected[BASE36_DIGITS];
				uint64_t	read;

				memset(expected, i == 0 ? '0' : 'z', BASE36_DIGITS);
				expected[position] = REFERENCE_LOWER[i == 0 ? digit : 35 - digit];
				encode_exact(ids[i], text);
				CHECK_TEXT(text, expected, BASE36_DIGITS);

				read = UNTOUCHED;
				CHECK(decode_exact(expected, BASE36_DIGITS, 8, &read));
				CHECK_UINT(read, ==, ids[i]);

				expected[position] = REFERENCE_UPPER[i == 0 ? digit : 35 - digit];
				read = UNTOUCHED;
				CHECK(decode_exact(expected, BASE36_DIGITS, 8, &read));
				CHECK_UINT(read, ==, ids[i]);
			}
		}
	}
}

/* Every byte at every position of several texts. */
static void
every_byte(void)
{
	static const char *const texts[] = {
		"000000000000", "0u2pf62ji4b9", "0U375NXQH5CQ", "zzzzzzzzzzzz"
	};

	for (size_t i = 0; i < LENGTH_OF(texts); i++)
		for (int position = 0; position < BASE36_DIGITS; position++)
			for (int byte = 0; byte < 256; byte++)
			{
				char		text[BASE36_DIGITS];

				memcpy(text, texts[i], BASE36_DIGITS);
				text[position] = (char) (unsigned char) byte;
				check_decode(text, 8);
			}
}

/* Every pair of bytes: what is wrong with one must not make up for another. */
static void
every_pair_of_bytes(void)
{
	Random		random = random_make(1);

	for (int first = 0; first < 256; first++)
		for (int second = 0; second < 256; second++)
		{
			char		text[BASE36_DIGITS] = "0u2pf62ji4b";
			size_t		position = (size_t) random_below(&random, BASE36_DIGITS);
			size_t		distance = (size_t) random_below(&random, BASE36_DIGITS - 1);

			text[BASE36_DIGITS - 1] = '9';
			text[position] = (char) (unsigned char) first;
			text[(position + 1 + distance) % BASE36_DIGITS] =
				(char) (unsigned char) second;
			check_decode(text, 8);
		}
}

/* Nothing but twelve digits is an ID, and no byte behind the text is read. */
static void
lengths(void)
{
	static const char fillings[] = {'0', '9', 'a', 'Z'};

	for (size_t len = 0; len <= 40; len++)
		for (size_t i = 0; i < LENGTH_OF(fillings); i++)
			for (size_t lead = 1; lead <= 16; lead++)
			{
				char		text[40];
				uint64_t	id = UNTOUCHED;

				memset(text, fillings[i], sizeof(text));
				CHECK(decode_exact(text, len, lead, &id) == (len == 12));
				if (len != 12)
					CHECK_UINT(id, ==, UNTOUCHED);
			}
}

/* Lengths that are 12 in a narrower type; such a text is not looked at. */
static void
huge_lengths(void)
{
	for (unsigned int bits = 4; bits < sizeof(size_t) * 8; bits++)
	{
		char	   *text = exact_alloc(BASE36_DIGITS, 8);
		uint64_t	id = UNTOUCHED;

		memset(text, '1', BASE36_DIGITS);
		CHECK(!base36_decode(text, BASE36_DIGITS + ((size_t) 1 << bits), &id));
		CHECK_UINT(id, ==, UNTOUCHED);
		exact_free(text, 8);
	}
}

/* Twelve digits are written, without a NUL, whatever was there before. */
static void
encode_writes_twelve_bytes(void)
{
	for (int filling = 0; filling < 256; filling++)
	{
		char		before[BASE36_DIGITS + 16];
		char		after[BASE36_DIGITS + 16];

		memset(before, filling, sizeof(before));
		memset(after, filling, sizeof(after));
		base36_encode(UINT64_C(109959589539758421), after + 8);
		memcpy(before + 8, "0u2pf62ji4b9", BASE36_DIGITS);
		CHECK_TEXT(after, before, sizeof(after));
	}
}

/* Values where a carry, a half or a machine word ends. */
static void
boundaries(void)
{
	for (uint64_t offset = 0; offset <= 40; offset++)
	{
		check_value(offset);
		check_value(SCRU64_MAX_ID - offset);
		for (unsigned int bit = 6; bit < 63; bit++)
		{
			uint64_t	power = UINT64_C(1) << bit;

			if (power + offset <= SCRU64_MAX_ID)
				check_value(power + offset);
			check_value(power - offset);
		}
		for (int exponent = 2; exponent < BASE36_DIGITS; exponent++)
			for (uint64_t digit = 1; digit < 36; digit++)
			{
				check_value(digit * reference_power(exponent) + offset);
				check_value(digit * reference_power(exponent) - offset);
			}
	}
}

/* Random values of all lengths, written in mixed case when they are read. */
static void
random_values(void)
{
	Random		random = random_make(2);

	for (int i = 0; i < 1200000; i++)
	{
		uint64_t	id;
		uint64_t	read = UNTOUCHED;
		uint64_t	upper = random_bits(&random);
		char		text[BASE36_DIGITS];
		bool		passed;

		id = (i % 2 == 0 ? random_bits(&random) : random_length(&random, 63)) %
			(SCRU64_MAX_ID + 1);
		check_value(id);

		reference_encode(id, text);
		for (int j = 0; j < BASE36_DIGITS; j++)
			if (upper >> j & 1)
				text[j] = REFERENCE_UPPER[reference_digit(text[j])];
		passed = CHECK(base36_decode(text, BASE36_DIGITS, &read));
		passed &= CHECK_UINT(read, ==, id);
		if (!passed)
			TELL("text %.12s", text);
	}
}

/* Whatever twelve digits say is an ID, and is written back as they are. */
static void
random_texts(void)
{
	Random		random = random_make(3);

	for (int i = 0; i < 300000; i++)
	{
		char		text[BASE36_DIGITS];
		char		written[BASE36_DIGITS];
		uint64_t	id = UNTOUCHED;

		for (int j = 0; j < BASE36_DIGITS; j++)
			text[j] = REFERENCE_LOWER[random_below(&random, 36)];
		CHECK(base36_decode(text, BASE36_DIGITS, &id));
		CHECK_UINT(id, <=, SCRU64_MAX_ID);
		encode_exact(id, written);
		CHECK_TEXT(written, text, BASE36_DIGITS);
	}
}

/* Bytes without a pattern, some of them digits. */
static void
random_bytes(void)
{
	Random		random = random_make(4);

	for (int i = 0; i < 300000; i++)
	{
		char		text[BASE36_DIGITS];
		uint64_t	share = random_below(&random, 16);

		for (int j = 0; j < BASE36_DIGITS; j++)
		{
			text[j] = REFERENCE_UPPER[random_below(&random, 36)];
			if (random_below(&random, 16) < share)
				text[j] = (char) (unsigned char) random_below(&random, 256);
		}
		check_decode(text, 1 + (size_t) i % 16);
	}
}

/* Texts are ordered as their IDs are. */
static void
order(void)
{
	Random		random = random_make(5);

	for (int i = 0; i < 300000; i++)
	{
		uint64_t	a = random_length(&random, 63) % (SCRU64_MAX_ID + 1);
		uint64_t	b = random_length(&random, 63) % (SCRU64_MAX_ID + 1);
		char		a_text[BASE36_DIGITS];
		char		b_text[BASE36_DIGITS];
		int			compared;

		if (i % 3 == 0 && a < SCRU64_MAX_ID)
			b = a + 1;
		base36_encode(a, a_text);
		base36_encode(b, b_text);
		compared = memcmp(a_text, b_text, BASE36_DIGITS);
		CHECK((compared < 0) == (a < b));
		CHECK((compared > 0) == (a > b));
	}
}

int
main(void)
{
	RUN(known_values);
	RUN(single_digits);
	RUN(every_byte);
	RUN(every_pair_of_bytes);
	RUN(lengths);
	RUN(huge_lengths);
	RUN(encode_writes_twelve_bytes);
	RUN(boundaries);
	RUN(random_values);
	RUN(random_texts);
	RUN(random_bytes);
	RUN(order);
	return harness_finish();
}
