/*-------------------------------------------------------------------------
 *
 * standbys.c
 *		How far the synchronous standbys have flushed the WAL, and whether a commit of this
 *		session would wait for them.
 *
 * PostgreSQL's own wait, SyncRepWaitForLSN(), is made for commits: it swallows a cancel,
 * reports a commit, and does not expect two sessions to wait for the same record.  So ceiling.c
 * waits, and the functions here only read the position that the WAL senders keep.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/xact.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "storage/lwlock.h"
#include "utils/guc.h"

#include "ceiling/standbys.h"
#include "clock.h"
#include "shmem/slots.h"

/* Milliseconds after which a wait gets a line in the log */
#define LONG_WAIT_MS		1000

/*
 * Are there synchronous standbys?  The checkpointer decides, so waits end when the setting is
 * taken back; until it has decided, the setting counts.
 */
bool
standbys_are_defined(void)
{
	static int	server_version = 0;
	uint8		standbys = WalSndCtl->sync_standbys_status;

	if (server_version == 0)
		server_version = atoi(GetConfigOption("server_version_num", false, false));
	if (!compat_sync_standbys_are_flags(server_version))
		return standbys != 0;
	if ((standbys & SYNC_STANDBY_INIT) == 0)
		return SyncRepStandbyNames != NULL && *SyncRepStandbyNames != '\0';
	return (standbys & SYNC_STANDBY_DEFINED) != 0;
}

/* Would a commit of this session wait for synchronous standbys? */
bool
standbys_are_waited_for(void)
{
	return SyncRepRequested() && standbys_are_defined();
}

/*
 * How far the synchronous standbys that count have flushed the WAL.
 *
 * Depending on synchronous_commit, a commit waits until they have received, flushed or
 * replayed it.  A failover keeps only flushed WAL.
 */
XLogRecPtr
standbys_reached(void)
{
	XLogRecPtr	reached;

	LWLockAcquire(SyncRepLock, LW_SHARED);
	reached = WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
	LWLockRelease(SyncRepLock);
	return reached;
}

/*
 * How many standbys are missing of those that commits wait for.  0 in a session that does not know
 * synchronous_standby_names yet.
 */
int
standbys_missing(void)
{
	SyncRepStandbyData *standbys;
	int			n_standbys;

	if (SyncRepConfig == NULL)
		return 0;
	n_standbys = SyncRepGetCandidateStandbys(&standbys);
	pfree(standbys);
	return Max(SyncRepConfig->num_sync - n_standbys, 0);
}

/*
 * The log, once a minute at most: this session has waited for standbys since a time by
 * monotonic_ms().  No line before the session knows synchronous_standby_names.
 */
void
standbys_log_wait(int64 since_ms)
{
	if (monotonic_ms() - since_ms < LONG_WAIT_MS || SyncRepConfig == NULL ||
		!slots_log_is_due(LOG_STANDBYS, 0))
		return;
	ereport(LOG,
			(errmsg("sessions wait until synchronous standbys have flushed the ceiling of scru64"),
			 errdetail("Standbys missing: %d of %d. The parameter \"%s\" is \"%s\".",
					   standbys_missing(), SyncRepConfig->num_sync,
					   "synchronous_standby_names", SyncRepStandbyNames),
			 errhint("IDs come again when the standbys have flushed it. If a standby is not coming back, take it out of \"%s\", and reload the configuration.",
					 "synchronous_standby_names")));
}
