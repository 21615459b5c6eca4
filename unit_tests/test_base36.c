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

/* Check both directions for an ID: it is written as lower, and read as text. */
static void
check_id(uint64_t id, const char *text, const char *lower)
{
	char	   *written = exact_alloc(BASE36_DIGITS, 8);
	uint64_t	read = UNTOUCHED;
	bool		passed;

	memset(written, 0, BASE36_DIGITS);
	base36_encode(id, written);
	passed = CHECK_TEXT(written, lower, BASE36_DIGITS);
	passed &= CHECK(decode_exact(text, BASE36_DIGITS, 8, &read));
	passed &= CHECK_UINT(read, ==, id);
	if (!passed)
		TELL("id %" PRIu64 ", text %.12s", id, text);
	exact_free(written, 8);
}

static void
known_values(void)
{
	/* the specification's examples */
	check_id(UINT64_C(109959589539758421), "0u2pf62ji4b9", "0u2pf62ji4b9");
	check_id(UINT64_C(109959589539758421), "0U2PF62JI4B9", "0u2pf62ji4b9");
	check_id(UINT64_C(110009624767914842), "0u375nxqh5cq", "0u375nxqh5cq");
	check_id(UINT64_C(110009624767914842), "0U375nxqH5CQ", "0u375nxqh5cq");

	/* where a digit, a half or a machine word ends */
	check_id(UINT64_C(0), "000000000000", "000000000000");
	check_id(UINT64_C(35), "00000000000Z", "00000000000z");
	check_id(UINT64_C(36), "000000000010", "000000000010");
	check_id(UINT64_C(16777215), "00000009zldr", "00000009zldr");
	check_id(UINT64_C(2176782335), "000000zzzzzz", "000000zzzzzz");
	check_id(UINT64_C(2176782336), "000001000000", "000001000000");
	check_id(UINT64_C(4294967296), "000001z141z4", "000001z141z4");
	check_id(UINT64_C(4738381336144834560), "zzzzzz000000", "zzzzzz000000");
	check_id(UINT64_C(4738381338321616895), "zzzzzzzzzzzz", "zzzzzzzzzzzz");
	check_id(UINT64_C(4738381338321616895), "ZZZZZZZZZZZZ", "zzzzzzzzzzzz");
}

/* IDs of all lengths, their digits in either case when they are read. */
static void
random_ids(void)
{
	Random		random = random_make(2);

	for (int i = 0; i < 300000; i++)
	{
		uint64_t	id = (i % 2 == 0 ? random_bits(&random) : random_length(&random, 63)) %
			(SCRU64_MAX_ID + 1);
		uint64_t	upper = random_bits(&random);
		char		text[BASE36_DIGITS];
		char		lower[BASE36_DIGITS];

		reference_encode(id, lower);
		for (int j = 0; j < BASE36_DIGITS; j++)
			text[j] = upper >> j & 1 ? REFERENCE_UPPER[reference_digit(lower[j])] : lower[j];
		check_id(id, text, lower);
	}
}

/* Every byte at every place of several texts, one of which has another bad byte. */
static void
every_byte(void)
{
	static const char *const texts[] = {
		"000000000000", "0u2pf62ji4b9", "0U375NXQH5CQ", "zzzzzzzzzzzz", "0u2pf6-ji4b9"
	};

	for (size_t i = 0; i < LENGTH_OF(texts); i++)
		for (int position = 0; position < BASE36_DIGITS; position++)
			for (int byte = 0; byte < 256; byte++)
			{
				char		text[BASE36_DIGITS];
				uint64_t	id = UNTOUCHED;
				uint64_t	expected = UNTOUCHED;
				bool		valid;

				memcpy(text, texts[i], BASE36_DIGITS);
				text[position] = (char) (unsigned char) byte;
				valid = reference_decode(text, BASE36_DIGITS, &expected);
				if (!CHECK(decode_exact(text, BASE36_DIGITS, 8, &id) == valid) ||
					!CHECK_UINT(id, ==, expected))
					TELL("byte %d at %d of %s", byte, position, texts[i]);
			}
}

/* Nothing but twelve digits is an ID, and no byte behind the text is read. */
static void
lengths(void)
{
	static const char text[] = "1111111111111111111111111111111111111111";
	uint64_t	id;

	for (size_t len = 0; len < sizeof(text); len++)
		for (size_t lead = 1; lead <= 16; lead++)
		{
			id = UNTOUCHED;
			CHECK(decode_exact(text, len, lead, &id) == (len == 12));
			CHECK((id == UNTOUCHED) == (len != 12));
		}

	/* lengths that are 12 in a narrower type */
	id = UNTOUCHED;
	for (unsigned int bits = 4; bits < sizeof(size_t) * 8; bits++)
		CHECK(!base36_decode(text, BASE36_DIGITS + ((size_t) 1 << bits), &id));
	CHECK_UINT(id, ==, UNTOUCHED);
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

int
main(void)
{
	RUN(known_values);
	RUN(random_ids);
	RUN(every_byte);
	RUN(lengths);
	RUN(encode_writes_twelve_bytes);
	return harness_finish();
}
