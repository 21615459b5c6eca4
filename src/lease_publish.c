/*-------------------------------------------------------------------------
 *
 * lease_publish.c
 *		The server's lease of a node, as the lease worker gives it to sessions.
 *
 * Upper storey.  What the worker, of a library of its own, calls of this one: it
 * publishes its lease, has sessions begin and end it, and looks how its node does.
 * See lease.c for what guards what.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "pg_compat.h"

#include "miscadmin.h"

#include "base36.h"
#include "ceiling.h"
#include "clock.h"
#include "lease.h"
#include "settings.h"

void
scru64_lease_set_info(const LeaseInfo *info)
{
	Lease	   *lease = node_slots_lease();

	SpinLockAcquire(&lease->mutex);
	lease->info = *info;
	SpinLockRelease(&lease->mutex);
	ConditionVariableBroadcast(&lease->changed);
}

/* Become the server's only lease worker.  False if there is one. */
bool
scru64_lease_claim(pid_t worker_pid)
{
	Lease	   *lease = node_slots_lease();
	bool		claimed;

	SpinLockAcquire(&lease->mutex);
	claimed = lease->info.worker_pid == 0;
	if (claimed)
		lease->info.worker_pid = worker_pid;
	SpinLockRelease(&lease->mutex);
	return claimed;
}

void
scru64_lease_attach_worker(Latch *latch)
{
	Lease	   *lease = node_slots_lease();

	SpinLockAcquire(&lease->mutex);
	lease->worker_latch = latch;
	SpinLockRelease(&lease->mutex);
}

/*
 * The ceiling of this server, in ticks.  Nobody raises or sets it until it is
 * unlocked.
 */
uint64
scru64_lease_hold_ceiling(void)
{
	ceiling_load(clock_tick(), allowance_ticks());
	return ceiling_hold();
}

void
scru64_lease_let_ceiling_go(void)
{
	ceiling_let_go();
}

bool
scru64_lease_begin(Scru64Node node, uint64 timestamp, uint64 limit)
{
	return node_slots_start_lease(node, timestamp, limit);
}

void
scru64_lease_extend(Scru64Node node, uint64 limit)
{
	node_slots_extend_lease(node, limit);
}

/*
 * The last ID of a node with a lease: the one it has given out, or the last it can
 * have given out before it was started in this tick.
 */
static uint64
last_of_state(Scru64Node node, uint64 state)
{
	Generator	generator;

	if (state == 0 || state == NODE_STATE_CHANGING)
		return 0;
	generator = generator_make(node);
	return node_state_last(state, &generator);
}

/* The object that a lease is kept in; a copy of the data directory has another. */
void
scru64_lease_object_name(char *name)
{
	struct stat dir;

	if (stat(DataDir, &dir) != 0)
		memset(&dir, 0, sizeof(dir));
	snprintf(name, LEASE_OBJECT_NAMELEN, "/scru64_lease.%u.%llx.%llx",
			 (unsigned int) geteuid(), (unsigned long long) dir.st_dev,
			 (unsigned long long) dir.st_ino);
}

/* End the lease; its last ID, or 0 if there was none. */
uint64
scru64_lease_end(void)
{
	Scru64Node	node;
	uint64		state = node_slots_end_lease(&node);

	return last_of_state(node, state);
}

/*
 * Have the sessions go on with the node of another lease, after the last ID of the
 * current one.  Anything but HAND_OVER_DONE: they go on with the current one.
 */
HandOver
scru64_lease_hand_over(Scru64Node node, uint64 timestamp, uint64 limit, uint64 *last_id)
{
	NodeReport	report;
	HandOver	result;
	uint64		state;

	if (!node_slots_report_lease(&report))
		return HAND_OVER_ENDED;
	result = node_slots_hand_over(node, timestamp, limit, clock_tick(),
								  allowance_ticks(), &state);
	if (result == HAND_OVER_DONE)
		*last_id = last_of_state(report.node, state);
	return result;
}

/*
 * Is there a lease, or has somebody ended it, by scru64_set_ceiling() for example?
 * Else how its node does.
 */
bool
scru64_lease_look(LeaseLook *look)
{
	NodeReport	report;

	if (!node_slots_report_lease(&report))
		return false;
	look->node = report.node;
	look->last_id = last_of_state(report.node, report.state);
	look->saturated = report.saturated;
	look->used = report.used;
	return true;
}

/* Has a session called since the last time? */
bool
scru64_lease_was_called(void)
{
	return pg_atomic_exchange_u32(&node_slots_lease()->called, 0) != 0;
}

/* Read a node spec of the realm. */
bool
scru64_lease_parse_spec(const char *text, NodeSpec *spec)
{
	return node_spec_parse(text, spec) == NODE_SPEC_OK;
}

/* An ID as text, which has BASE36_DIGITS + 1 bytes. */
void
scru64_lease_id_text(uint64 id, char *text)
{
	base36_encode(id, text);
	text[BASE36_DIGITS] = '\0';
}
