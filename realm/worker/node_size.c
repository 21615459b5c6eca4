/*-------------------------------------------------------------------------
 *
 * node_size.c
 *		How many bits of its IDs a server's node should take, so that the node has the capacity
 *		that sessions use.
 *
 * Knows nothing of PostgreSQL.  The rules are in node_size.h.
 *
 *-------------------------------------------------------------------------
 */
#include "realm/worker/node_size.h"

static int
clamp(const NodeSize *size, int node_id_size)
{
	if (node_id_size > size->quiet)
		return size->quiet;
	return node_id_size < size->least ? size->least : node_id_size;
}

void
node_size_begin(NodeSize *size, int current, int64_t now_ms, uint64_t saturated,
				uint64_t used)
{
	size->current = current;
	size->quiet_since_ms = now_ms;
	size->looked_at_ms = now_ms;
	size->saturated = saturated;
	size->used = used;
	size->waiting_looks = 0;
}

void
node_size_look(NodeSize *size, int64_t now_ms, uint64_t saturated, uint64_t used)
{
	int64_t		elapsed = now_ms - size->looked_at_ms;
	uint64_t	capacity;

	if (elapsed < NODE_SIZE_LOOK_MS)
		return;
	/* in 1/SCRU64_TICK_MS of an ID, so that no division has a remainder */
	capacity = (uint64_t) elapsed << (SCRU64_NODE_CTR_SIZE - size->current);
	if (((used - size->used) << SCRU64_TICK_SHIFT) * NODE_SIZE_QUIET >= capacity)
		size->quiet_since_ms = now_ms;
	size->waiting_looks = saturated != size->saturated ? size->waiting_looks + 1 : 0;
	size->saturated = saturated;
	size->used = used;
	size->looked_at_ms = now_ms;
}

int64_t
node_size_next_look(const NodeSize *size)
{
	if (size->waiting_looks > 0 && size->current > size->least)
		return size->looked_at_ms + NODE_SIZE_LOOK_MS;
	return size->current < size->quiet ? size->looked_at_ms + NODE_SIZE_CALM_LOOK_MS : -1;
}

int
node_size_after_waits(const NodeSize *size)
{
	return clamp(size, size->waiting_looks >= NODE_SIZE_WAITING_LOOKS ?
				 size->current - NODE_SIZE_STEP : size->current);
}

int
node_size_after_quiet(const NodeSize *size, int64_t now_ms, int64_t ttl_ms)
{
	return clamp(size, now_ms - size->quiet_since_ms >= ttl_ms ?
				 size->current + NODE_SIZE_STEP : size->current);
}
