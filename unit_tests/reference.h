/*-------------------------------------------------------------------------
 *
 * reference.h
 *		The text forms once more, slowly: what the codec and the parser are
 *		compared with.
 *
 * Written from the words of the specification and in other ways than the code
 * under test: digits are found by subtracting powers of 36, the grammar is a
 * regular expression, numbers are read by the C library.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pure/node_spec.h"

#define REFERENCE_DIGITS	12
#define REFERENCE_LOWER		"0123456789abcdefghijklmnopqrstuvwxyz"
#define REFERENCE_UPPER		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* 36 to the power of exponent, 0 .. 12 */
static inline uint64_t
reference_power(int exponent)
{
	uint64_t	power = 1;

	while (exponent-- > 0)
		power *= 36;
	return power;
}

/* Value of a digit, 36 if the byte is none. */
static inline unsigned int
reference_digit(char byte)
{
	unsigned int value = 0;

	while (value < 36 && REFERENCE_LOWER[value] != byte &&
		   REFERENCE_UPPER[value] != byte)
		value++;
	return value;
}

/* As base36_decode(). */
static inline bool
reference_decode(const char *text, size_t len, uint64_t *id)
{
	uint64_t	sum = 0;

	if (len != REFERENCE_DIGITS)
		return false;
	for (int i = 0; i < REFERENCE_DIGITS; i++)
	{
		unsigned int digit = reference_digit(text[i]);

		if (digit == 36)
			return false;
		sum += digit * reference_power(REFERENCE_DIGITS - 1 - i);
	}
	*id = sum;
	return true;
}

/* As base36_encode(). */
static inline void
reference_encode(uint64_t id, char *text)
{
	for (int i = 0; i < REFERENCE_DIGITS; i++)
	{
		uint64_t	power = reference_power(REFERENCE_DIGITS - 1 - i);
		unsigned int digit = 0;

		while (id >= power)
		{
			id -= power;
			digit++;
		}
		text[i] = REFERENCE_LOWER[digit];
	}
}

/* As node_spec_parse(). */
static inline NodeSpecStatus
reference_parse(const char *text, NodeSpec *spec)
{
	static const char grammar[] =
		"^([0-9]{1,8}|0[xX][0-9a-fA-F]{1,6}|[0-9a-zA-Z]{12})/([0-9]{1,3})$";
	static regex_t regex;
	static bool compiled = false;
	regmatch_t	match[3];
	size_t		left_len;
	unsigned long size;
	unsigned long node_id;

	if (!compiled && regcomp(&regex, grammar, REG_EXTENDED) != 0)
		abort();
	compiled = true;

	if (regexec(&regex, text, 3, match, 0) != 0)
		return NODE_SPEC_BAD_SYNTAX;
	left_len = (size_t) (match[1].rm_eo - match[1].rm_so);

	size = strtoul(text + match[2].rm_so, NULL, 10);
	if (size == 0 || size >= 24)
		return NODE_SPEC_BAD_SIZE;

	if (left_len == REFERENCE_DIGITS)
	{
		uint64_t	node_prev = 0;

		if (!reference_decode(text, left_len, &node_prev))
			abort();
		spec->node_prev = node_prev < UINT64_C(16777216) ? 0 : node_prev;
		node_id = (unsigned long) (node_prev % UINT64_C(16777216)) /
			(16777216UL / (1UL << size));
	}
	else
	{
		spec->node_prev = 0;
		node_id = strtoul(text, NULL, strpbrk(text, "xX") == NULL ? 10 : 16);
		if (node_id >= 1UL << size)
			return NODE_SPEC_BAD_NODE_ID;
	}
	spec->node.node_id = (uint32_t) node_id;
	spec->node.node_id_size = (uint32_t) size;
	return NODE_SPEC_OK;
}

#endif							/* REFERENCE_H */
