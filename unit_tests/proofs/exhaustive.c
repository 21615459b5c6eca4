/*
 * exhaustive.c
 *		All halves of IDs, and all nodes, as text and back.  Exit status 10: one is another then.
 */
#include <string.h>

#include "pure/base36.h"
#include "pure/node_spec.h"

/* Counts in six digits, upwards in the first half of the text, and downwards in the second one. */
static bool
ids_are_right(char *text, int at, uint64_t id)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t	decoded;
	char		encoded[BASE36_DIGITS];

	if (at == 6)
	{
		base36_encode(id, encoded);
		return memcmp(encoded, text, BASE36_DIGITS) == 0 && base36_decode(text, BASE36_DIGITS, &decoded) && decoded == id;
	}
	for (uint64_t digit = 0; digit < (at == 0 ? 18 : 36); digit++)
	{
		text[at] = digits[digit];
		text[at + 6] = digits[35 - digit];
		if (!ids_are_right(text, at + 1, id * 36 + digit * 36 * 36 * 36 * 36 * 36 * 36 + 35 - digit))
			return false;
	}
	return true;
}

int
main(void)
{
	char		text[NODE_SPEC_BUFLEN];
	NodeSpec	again;
	bool		right = true;

	for (uint32_t size = 1; size <= 23; size++)
		for (uint32_t node_id = 0; node_id < UINT32_C(1) << size && right; node_id++)
		{
			NodeSpec	spec = {.node = {.node_id = node_id, .node_id_size = size}};

			node_spec_format(&spec, text);
			right = node_spec_parse(text, &again) == NODE_SPEC_OK && node_key(again.node) == node_key(spec.node);
		}
	return right && ids_are_right(text, 0, 0) ? 0 : 10;
}
