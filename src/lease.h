/*-------------------------------------------------------------------------
 *
 * lease.h
 *		The server's lease of a node, as sessions and the lease worker see it.
 *
 * Upper storey.  See lease.c for what guards what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASE_H
#define LEASE_H

#include "datatype/timestamp.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/spin.h"

#include "node_slots.h"

#define LEASE_TEXT_LEN		256
#define LEASE_OBJECT_NAMELEN	128

/* What is known of the lease and of the worker that keeps it. */
typedef struct LeaseInfo
{
	pid_t		worker_pid;		/* 0: there is no worker */
	bool		busy;			/* is it talking with the realm? */
	Scru64Node	node;			/* node_id_size is 0 if there is no lease */
	TimestampTz granted_at;		/* by the realm's clock, as expires_at */
	TimestampTz expires_at;
	TimestampTz renewed_at;		/* by this server's clock, as those below; or 0 */
	TimestampTz next_attempt_at;
	TimestampTz last_error_at;
	TimestampTz size_changed_at;	/* or 0: it is as it began */
	int64		failures;		/* since the last success */
	char		holder[LEASE_TEXT_LEN];
	char		last_error[LEASE_TEXT_LEN];
	char		size_reason[LEASE_TEXT_LEN];
} LeaseInfo;

/* What the worker sees of the node that the sessions use. */
typedef struct LeaseLook
{
	Scru64Node	node;
	uint64		last_id;		/* or the last that it can have given out */
	uint64		saturated;		/* since the node's beginning, as used */
	uint64		used;
} LeaseLook;

struct Lease
{
	slock_t		mutex;
	LeaseInfo	info;
	Latch	   *worker_latch;
	pg_atomic_uint32 called;	/* does a session wait for the realm? */
	pg_atomic_uint64 requested; /* when a worker was asked for, monotonic seconds */
	ConditionVariable changed;
	NodeKey		last_key;		/* of a lease that was ended, */
	uint64		last_state;		/* and its last state, or 0 */
};

extern void lease_init(Lease *lease);
extern LeaseInfo lease_info(void);
extern NodeSlot *lease_find_slot(NodeKey *key, uint64 *state);
extern void lease_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick);
extern void lease_wake_worker(bool call_realm);
extern void register_lease_worker(void);

/* For the worker */
extern PGDLLEXPORT void scru64_lease_set_info(const LeaseInfo *info);
extern PGDLLEXPORT bool scru64_lease_claim(pid_t worker_pid);
extern PGDLLEXPORT void scru64_lease_attach_worker(Latch *latch);
extern PGDLLEXPORT void scru64_lease_object_name(char *name);
extern PGDLLEXPORT uint64 scru64_lease_hold_ceiling(void);
extern PGDLLEXPORT void scru64_lease_let_ceiling_go(void);
extern PGDLLEXPORT bool scru64_lease_begin(Scru64Node node, uint64 timestamp, uint64 limit);
extern PGDLLEXPORT void scru64_lease_extend(Scru64Node node, uint64 limit);
extern PGDLLEXPORT HandOver scru64_lease_hand_over(Scru64Node node, uint64 timestamp,
												   uint64 limit, uint64 *last_id);
extern PGDLLEXPORT uint64 scru64_lease_end(void);
extern PGDLLEXPORT bool scru64_lease_look(LeaseLook *look);
extern PGDLLEXPORT bool scru64_lease_was_called(void);
extern PGDLLEXPORT bool scru64_lease_parse_spec(const char *text, NodeSpec *spec);
extern PGDLLEXPORT void scru64_lease_id_text(uint64 id, char *text);

#endif							/* LEASE_H */
