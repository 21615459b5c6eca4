/*-------------------------------------------------------------------------
 *
 * worker_mailbox.h
 *		How sessions and the lease worker reach each other.
 *
 * Sessions wake the worker, wait for a lease or for its renewal, and read the state that the worker
 * publishes.  The waits can be cancelled, and end after ten seconds at the latest.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKER_MAILBOX_H
#define WORKER_MAILBOX_H

#include "datatype/timestamp.h"

#include "settings.h"
#include "shmem/shared_parts.h"
#include "shmem/slot.h"

#define LEASE_TEXT_LEN		256

/* The state of the worker and of its lease, which the worker publishes to all sessions. */
typedef struct LeaseInfo
{
	pid_t		worker_pid;		/* 0: there is no worker */
	bool		no_worker_slot; /* had max_worker_processes no room for the last worker? */
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

extern const SharedPart mailbox_part;

extern LeaseInfo mailbox_info(void);
extern NodeSlot *mailbox_find_slot(NodeKey *key, LeaseInfo *info, bool *has_worker_slot);
extern bool mailbox_wait_for_renewal(NodeSlot *slot, NodeKey key, uint64 tick, LeaseInfo *info);
extern bool mailbox_may_bring_lease(const LeaseInfo *info);
extern bool mailbox_may_renew(const LeaseInfo *info, uint64 limit, uint64 tick);
extern void mailbox_wake_worker(bool call_realm);
extern bool mailbox_call_worker(bool call_realm);
extern void mailbox_register_worker(void);

/* For the worker */
extern PGDLLEXPORT void scru64_mailbox_copy_text(char *copy, const char *text, size_t size);
extern PGDLLEXPORT void scru64_mailbox_set_info(const LeaseInfo *info);
extern PGDLLEXPORT bool scru64_mailbox_was_called(void);

#endif							/* WORKER_MAILBOX_H */
