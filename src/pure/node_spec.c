/*-------------------------------------------------------------------------
 *
 * node_spec.c
 *		Node specs such as '42/8': parse and format them; do two nodes overlap?
 *
 * The parser refuses all that the specification's reference libraries refuse: a
 * sign, a blank, a second slash, anything after the size.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/node_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pure/base36.h"

#define NODE_ID_MAXLEN		8	/* digits, "0x" included */
#define NODE_ID_SIZE_MAXLEN 3

/*
 * Read len digits, at least one, up to the slash or the end of the text.  The callers limit
 * len to eight, so the value has at most 32 bits.  strtoul() takes more than digits.
 */
static bool
parse_digits(const char *text, size_t len, int radix, uint32_t *value)
{
	const char *digits = radix == 16 ? "0123456789abcdefABCDEF" : "0123456789";

	*value = (uint32_t) strtoul(text, NULL, radix);
	return len > 0 && strspn(text, digits) == len;
}

/* Read a decimal or hexadecimal node_id. */
static bool
parse_node_id(const char *text, size_t len, uint32_t *node_id)
{
	if (len > NODE_ID_MAXLEN)
		return false;
	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return parse_digits(text + 2, len - 2, 16, node_id);
	return parse_digits(text, len, 10, node_id);
}

NodeSpecStatus
node_spec_parse(const char *text, NodeSpec *spec)
{
	const char *slash = strchr(text, '/');
	uint64_t	node_prev = 0;
	uint32_t	node_id = 0;
	uint32_t	node_id_size;
	size_t		left_len;
	size_t		right_len;

	if (slash == NULL)
		return NODE_SPEC_BAD_SYNTAX;
	left_len = (size_t) (slash - text);
	right_len = strlen(slash + 1);

	if (!base36_decode(text, left_len, &node_prev) &&
		!parse_node_id(text, left_len, &node_id))
		return NODE_SPEC_BAD_SYNTAX;

	if (right_len > NODE_ID_SIZE_MAXLEN ||
		!parse_digits(slash + 1, right_len, 10, &node_id_size))
		return NODE_SPEC_BAD_SYNTAX;
	if (node_id_size < SCRU64_MIN_NODE_ID_SIZE ||
		node_id_size > SCRU64_MAX_NODE_ID_SIZE)
		return NODE_SPEC_BAD_SIZE;

	if (left_len == BASE36_DIGITS)
		node_id = scru64_get_node_ctr(node_prev) >>
			(SCRU64_NODE_CTR_SIZE - node_id_size);
	else if (node_id >> node_id_size != 0)
		return NODE_SPEC_BAD_NODE_ID;

	spec->node.node_id = node_id;
	spec->node.node_id_size = node_id_size;
	spec->node_prev = scru64_get_timestamp(node_prev) > 0 ? node_prev : 0;
	return NODE_SPEC_OK;
}

void
node_spec_format(const NodeSpec *spec, char *buf)
{
	int			len = BASE36_DIGITS;

	if (spec->node_prev == 0)
		len = snprintf(buf, NODE_SPEC_BUFLEN, "%u", spec->node.node_id);
	else
		base36_encode(spec->node_prev, buf);
	snprintf(buf + len, NODE_SPEC_BUFLEN - (size_t) len, "/%u", spec->node.node_id_size);
}

bool
nodes_overlap(Scru64Node a, Scru64Node b)
{
	uint32_t	counter_of_either = scru64_max_counter(a) | scru64_max_counter(b);

	return ((scru64_node_base(a) ^ scru64_node_base(b)) & ~counter_of_either) == 0;
}
