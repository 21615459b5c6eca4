/*-------------------------------------------------------------------------
 *
 * lease.h
 *		The server's lease of a node, as sessions and the lease worker see it.
 *
 * lease.c says how each field is guarded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEASE_H
#define LEASE_H

#include "datatype/timestamp.h"

#include "settings.h"
#include "shmem/slot.h"

#define LEASE_TEXT_LEN		256

/* The state of the worker and of its lease, which the worker publishes to all sessions. */
typedef struct LeaseInfo
{
	pid_t		worker_pid;		/* 0: there is no worker */
	bool		busy;			/* is the worker calling the realm? */
	Scru64Node	node;			/* node_id_size is 0 if there is no lease */
	bool		is_standby_lease;	/* no session uses the lease before recovery has ended */
	TimestampTz granted_at;		/* by the realm's clock, as expires_at */
	TimestampTz expires_at;
	TimestampTz renewed_at;		/* by this server's clock, as all times below; or 0 */
	TimestampTz next_attempt_at;
	TimestampTz last_error_at;
	TimestampTz size_changed_at;	/* 0: the node_id_size has not changed */
	int64		failures;		/* failed attempts since the last success */
	bool		worker_failed;	/* has the worker itself raised last_error? */
	char		holder[MAX_HOLDER_LEN + 1];
	char		last_error[LEASE_TEXT_LEN];
	char		size_reason[LEASE_TEXT_LEN];
} LeaseInfo;

extern Size lease_size(void);
extern void lease_attach_anew(void);
extern LeaseInfo lease_info(void);
extern NodeSlot *lease_find_slot(NodeKey *key, LeaseInfo *info, bool *has_worker_slot);
extern bool lease_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick, LeaseInfo *info);
extern void lease_wake_worker(bool call_realm);
extern bool lease_call_worker(bool call_realm);
extern void register_lease_worker(void);

/* For the worker */
extern PGDLLEXPORT void scru64_lease_copy_text(char *copy, const char *text, size_t size);
extern PGDLLEXPORT void scru64_lease_set_info(const LeaseInfo *info);
extern PGDLLEXPORT bool scru64_lease_was_called(void);

#endif							/* LEASE_H */
