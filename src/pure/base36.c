/*-------------------------------------------------------------------------
 *
 * base36.c
 *		IDs as text: twelve Base36 digits.
 *
 * An ID is two halves of six digits.  Each half is below 36^6 < 2^32, so 32-bit
 * arithmetic does for it, and the processor works on both at once.  The only divisions
 * are by constants.
 *
 * Reading has a table of all bytes: comparisons with '0', 'a' and 'A' instead, whose results
 * no processor foresees, made COPY FROM of a table of IDs slower by 16%.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/base36.h"

#define HALF_DIGITS		(BASE36_DIGITS / 2)
#define HALF_RADIX		UINT32_C(2176782336)	/* 36^6 */

/* An entry of digit_values: this bit, and the digit's value below it. */
#define IS_DIGIT		0x80
#define VALUE_MASK		0x3f

#define DIGIT(value)	(IS_DIGIT | (value))
#define LETTER(lower, upper, value) \
	[lower] = DIGIT(value), [upper] = DIGIT(value)

/* Indexed by a byte; 0 if the byte is no digit. */
static const uint8_t digit_values[UINT8_MAX + 1] = {
	['0'] = DIGIT(0), ['1'] = DIGIT(1), ['2'] = DIGIT(2),
	['3'] = DIGIT(3), ['4'] = DIGIT(4), ['5'] = DIGIT(5),
	['6'] = DIGIT(6), ['7'] = DIGIT(7), ['8'] = DIGIT(8),
	['9'] = DIGIT(9),
	LETTER('a', 'A', 10), LETTER('b', 'B', 11),
	LETTER('c', 'C', 12), LETTER('d', 'D', 13),
	LETTER('e', 'E', 14), LETTER('f', 'F', 15),
	LETTER('g', 'G', 16), LETTER('h', 'H', 17),
	LETTER('i', 'I', 18), LETTER('j', 'J', 19),
	LETTER('k', 'K', 20), LETTER('l', 'L', 21),
	LETTER('m', 'M', 22), LETTER('n', 'N', 23),
	LETTER('o', 'O', 24), LETTER('p', 'P', 25),
	LETTER('q', 'Q', 26), LETTER('r', 'R', 27),
	LETTER('s', 'S', 28), LETTER('t', 'T', 29),
	LETTER('u', 'U', 30), LETTER('v', 'V', 31),
	LETTER('w', 'W', 32), LETTER('x', 'X', 33),
	LETTER('y', 'Y', 34), LETTER('z', 'Z', 35),
};

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* The value of six digits; clears IS_DIGIT in *seen if a byte is no digit. */
static inline uint32_t
decode_half(const char *text, uint8_t *seen)
{
	uint32_t	half = 0;

	for (int i = 0; i < HALF_DIGITS; i++)
	{
		uint8_t		value = digit_values[(unsigned char) text[i]];

		*seen &= value;
		half = half * 36 + (value & VALUE_MASK);
	}
	return half;
}

bool
base36_decode(const char *text, size_t len, uint64_t *id)
{
	uint8_t		seen = IS_DIGIT;
	uint32_t	high;
	uint32_t	low;

	if (len != BASE36_DIGITS)
		return false;

	high = decode_half(text, &seen);
	low = decode_half(text + HALF_DIGITS, &seen);
	if (seen != IS_DIGIT)
		return false;

	*id = (uint64_t) high * HALF_RADIX + low;
	return true;
}

static inline void
encode_half(uint32_t half, char *text)
{
	for (int i = HALF_DIGITS - 1; i >= 0; i--)
	{
		text[i] = digits[half % 36];
		half /= 36;
	}
}

void
base36_encode(uint64_t id, char *text)
{
	encode_half((uint32_t) (id / HALF_RADIX), text);
	encode_half((uint32_t) (id % HALF_RADIX), text + HALF_DIGITS);
}
