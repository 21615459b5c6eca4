/*-------------------------------------------------------------------------
 *
 * fuzz_base36.c
 *		Fuzz target of base36.c, for libFuzzer.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/base36.h"

#include "fuzz.h"
#include "reference.h"
#include "pure/scru64.h"

#define UNTOUCHED	UINT64_C(0xa5a5a5a5a5a5a5a5)

/* Any bytes: read as the reference reads them, and written back. */
static void
fuzz_text(const uint8_t *data, size_t size)
{
	char	   *text = exact_copy(data, size);
	uint64_t	id = UNTOUCHED;
	uint64_t	expected = UNTOUCHED;
	bool		valid = base36_decode(text, size, &id);

	REQUIRE(valid == reference_decode(text, size, &expected));
	REQUIRE(id == expected);
	if (valid)
	{
		char	   *written = exact_copy(data, size);

		REQUIRE(id <= SCRU64_MAX_ID);
		base36_encode(id, written);
		for (size_t i = 0; i < size; i++)
			REQUIRE(written[i] == REFERENCE_LOWER[reference_digit(text[i])]);
		free(written);
	}
	free(text);
}

/* Any value: written as the reference writes it, and read back. */
static void
fuzz_value(const uint8_t *data, size_t size)
{
	char		expected[BASE36_DIGITS];
	char	   *text = exact_copy((const uint8_t *) "            ",
								  BASE36_DIGITS);
	uint64_t	id = 0;
	uint64_t	read = UNTOUCHED;

	memcpy(&id, data, size < sizeof(id) ? size : sizeof(id));
	id %= SCRU64_MAX_ID + 1;

	base36_encode(id, text);
	reference_encode(id, expected);
	REQUIRE(memcmp(text, expected, BASE36_DIGITS) == 0);
	REQUIRE(base36_decode(text, BASE36_DIGITS, &read));
	REQUIRE(read == id);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_text(data, size);
	fuzz_value(data, size);
	return 0;
}
