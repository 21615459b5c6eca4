/*-------------------------------------------------------------------------
 *
 * standbys.c
 *		How far the synchronous standbys are, and whether to wait for them.
 *
 * PostgreSQL's own wait, SyncRepWaitForLSN(), is made for commits: it swallows a cancel,
 * reports a commit, and does not expect two sessions to wait for the same record.  So we only
 * read the position that the WAL senders keep for these waits.
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

/*
 * Are there synchronous standbys?  The checkpointer decides, so waits end when the setting is
 * taken back; until it has decided, the setting counts.
 */
static bool
are_defined(void)
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
	return SyncRepRequested() && are_defined();
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
