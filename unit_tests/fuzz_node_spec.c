/*-------------------------------------------------------------------------
 *
 * fuzz_node_spec.c
 *		Fuzz target of node_spec.c, for libFuzzer.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/node_spec.h"

#include "fuzz.h"
#include "reference.h"

#define UNTOUCHED	0xa5

/* What a valid spec says is in its range. */
static void
require_in_range(const NodeSpec *spec)
{
	REQUIRE(spec->node.node_id_size >= 1 && spec->node.node_id_size <= 23);
	REQUIRE(spec->node.node_id >> spec->node.node_id_size == 0);
	REQUIRE(spec->node_prev <= SCRU64_MAX_ID);
	if (spec->node_prev != 0)
	{
		uint32_t	node_ctr = scru64_get_node_ctr(spec->node_prev);

		REQUIRE(scru64_get_timestamp(spec->node_prev) > 0);
		REQUIRE((node_ctr & ~scru64_max_counter(spec->node)) ==
				scru64_node_base(spec->node));
	}
}

static void
require_equal(const NodeSpec *a, const NodeSpec *b)
{
	REQUIRE(a->node.node_id == b->node.node_id);
	REQUIRE(a->node.node_id_size == b->node.node_id_size);
	REQUIRE(a->node_prev == b->node_prev);
}

/* A spec is written so that it is read as it was. */
static void
require_round_trip(const NodeSpec *spec)
{
	char	   *text = malloc(NODE_SPEC_BUFLEN);
	NodeSpec	read;

	if (text == NULL)
		abort();
	memset(text, UNTOUCHED, NODE_SPEC_BUFLEN);
	node_spec_format(spec, text);
	REQUIRE(node_spec_parse(text, &read) == NODE_SPEC_OK);
	require_equal(&read, spec);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size > 0 ? memchr(data, '\0', size) : NULL;
	size_t		len = nul == NULL ? size : (size_t) (nul - data);
	char	   *text = malloc(len + 1);
	NodeSpec	spec;
	NodeSpec	expected;
	NodeSpecStatus status;

	if (text == NULL)
		abort();
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';

	memset(&spec, UNTOUCHED, sizeof(spec));
	memset(&expected, UNTOUCHED, sizeof(expected));
	status = node_spec_parse(text, &spec);
	if (status == NODE_SPEC_OK)
	{
		REQUIRE(reference_parse(text, &expected) == NODE_SPEC_OK);
		require_equal(&spec, &expected);
		require_in_range(&spec);
		require_round_trip(&spec);
	}
	else
	{
		NodeSpec	other;

		REQUIRE(memcmp(&spec, &expected, sizeof(spec)) == 0);
		REQUIRE(reference_parse(text, &other) == status);
	}
	free(text);
	return 0;
}
