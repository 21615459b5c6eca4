/*-------------------------------------------------------------------------
 *
 * storage.c
 *		The ceiling's page: its file, its buffer, the WAL, the standby; crash and recovery.
 *
 * WAL that is not flushed may survive a crash or not; the standby may have flushed more than
 * it says.
 *
 *-------------------------------------------------------------------------
 */

#define MAX_RECORDS		131072
#define CONTENTS		64		/* bytes of the page that are used */

typedef enum RecordType
{
	RECORD_ANY, RECORD_CEILING, RECORD_COMMIT, RECORD_PREPARE
} RecordType;

typedef struct Record
{
	RecordType	type;
	XLogRecPtr	end;
	int			transaction;
	uint64		xid;
	char		page[CONTENTS];
} Record;

typedef struct File
{
	bool		has_page;
	char		page[BLCKSZ] pg_attribute_aligned(8);
} File;

static Record wal[MAX_RECORDS];
HISTORY_LOCAL static int n_records = 0;
HISTORY_LOCAL XLogRecPtr flushed = 0, standby_flushed = 0;
HISTORY_LOCAL static XLogRecPtr inserted = 0, redo = 0;	/* redo: recovery begins there */
HISTORY_LOCAL static File file = {0}, synced = {0};	/* synced: as of the last checkpoint */
SERVER_LOCAL static bool is_read = false, is_dirty = false;
SERVER_LOCAL static bool is_lost = false;	/* the file has lost a write */
SERVER_LOCAL static LWLock content_lock = {0};
SERVER_LOCAL static WalSndCtlData senders = {0};
static char buffer[BLCKSZ] pg_attribute_aligned(PG_CACHE_LINE_SIZE);

char	   *BufferBlocks = buffer;
int			NBuffers = 1, NLocBuffer = 0;
WalSndCtlData *WalSndCtl = &senders;

/*
 * The WAL
 */

XLogRecPtr
wal_insert(RecordType type, int transaction, uint64 xid)
{
	Record	   *record = &wal[n_records++];

	if (n_records == MAX_RECORDS)
		end_history();
	inserted += 8 + rnd(100);
	*record = (Record) {.type = type, .end = inserted, .transaction = transaction, .xid = xid};
	if (type == RECORD_CEILING)
		memcpy(record->page, buffer, CONTENTS);
	return inserted;
}

FN(static uint64, ceiling_of, (const char *page),
   return *(const uint64 *) (PageGetContents((Page) page) + 2 * sizeof(uint32));)

/* The ceiling of the WAL up to an LSN */
uint64
ceiling_at(XLogRecPtr lsn)
{
	for (int i = n_records - 1; i >= 0; i--)
	{
		if (wal[i].type == RECORD_CEILING && wal[i].end <= lsn)
			return ceiling_of(wal[i].page);
	}
	return 0;
}

XLogRecPtr
log_newpage_buffer(Buffer number, bool is_standard)
{
	XLogRecPtr	lsn;

	scheduling_point();
	if (CritSectionCount == 0)
		violation("a record outside of a critical section");
	lsn = wal_insert(RECORD_CEILING, -1, 0);
	/* in 15 a macro, which has its argument twice */
	PageSetLSN((Page) buffer, lsn);
	trace("the ceiling " UINT64_FORMAT " is in the WAL", ceiling_of(buffer));
	ceiling_is_written(ceiling_of(buffer));
	scheduling_point();
	return lsn;
}

void
XLogFlush(XLogRecPtr lsn)
{
	scheduling_point();
	must_be_quiet("a flush");
	if (swarm.is_slow && !is_weak && me->call_ns > 0 && ++call_flushes > MAX_RAISES)
		violation("a call raises the ceiling again and again");
	while (flushed < lsn)
	{
		XLogRecPtr	target = inserted;

		nap(MS * (swarm.is_slow ? 4500 + rnd(1500) :
				  rnd((one_in(3) ? swarm.flush_ms : Min(swarm.flush_ms, 10)) + 1)));
		flushed = Max(flushed, target);
	}
	scheduling_point();
}

FN(XLogRecPtr, GetFlushRecPtr, (TimeLineID *timeline), scheduling_point(); return flushed;)

/*
 * The standby
 */

FN(bool, waits_for_standby, (void),
   return swarm.has_standby && synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH;)

void
wait_for_standby(XLogRecPtr lsn)
{
	while (waits_for_standby() && senders.lsn[SYNC_REP_WAIT_FLUSH] < lsn && !is_canceled[me->number])
		nap(5 * MS);
}

static void
run_standby(void)
{
	XLogRecPtr	before = standby_flushed;
	XLogRecPtr *told = &senders.lsn[SYNC_REP_WAIT_FLUSH];

	if (flushed > before)
		standby_flushed = one_in(2) ? flushed : before + rnd((int64) (flushed - before) + 1);
	if (swarm.has_standby)
	{
		*told = Max(*told, one_in(3) ? before : standby_flushed);
		senders.lsn[SYNC_REP_WAIT_WRITE] = flushed;
	}
}

/*
 * The file and its buffer
 */

FN(static bool, page_is_locked, (void), return page_owner == me && page_mode == ExclusiveLock;)

static void
do_io(const char *what)
{
	scheduling_point();
	must_be_quiet(what);
	if (!page_is_locked())
		violation("%s without the lock of the page", what);
	if (one_in(swarm.fail_1in))
		raise_error(ERRCODE_IO_ERROR, what);
}

FN(bool, smgrexists, (SMgrRelation reln, ForkNumber fork), do_io("smgrexists()"); return file.has_page;)
FN(BlockNumber, smgrnblocks, (SMgrRelation reln, ForkNumber fork),
   do_io("smgrnblocks()"); return file.has_page;)
FN(void, smgrcreate, (SMgrRelation reln, ForkNumber fork, bool is_redo), do_io("smgrcreate()");)
FN(void, extend_file, (SMgrRelation reln, ForkNumber fork, BlockNumber number, char *page, bool skip_fsync),
   do_io("smgrextend()"); file.has_page = true; memcpy(file.page, page, BLCKSZ);)
FN(void, read_file, (SMgrRelation reln, ForkNumber fork, BlockNumber number, char *page),
   do_io("smgrread()"); memcpy(page, file.page, BLCKSZ);)
FN(void, smgrreadv, (SMgrRelation reln, ForkNumber fork, BlockNumber number, void **pages, BlockNumber n),
   read_file(reln, fork, number, pages[0]);)
FN(Oid, RelidByRelfilenumber, (Oid space, Oid number), scheduling_point(); return InvalidOid;)
FN(void, lock_page, (Buffer number, int mode),
   LWLockAcquire(&content_lock, mode == BUFFER_LOCK_EXCLUSIVE ? LW_EXCLUSIVE : LW_SHARED);)
FN(void, UnlockReleaseBuffer, (Buffer number), LWLockRelease(&content_lock);)
FN(void, PageInit, (Page page, Size size, Size special),
   memset(page, 0, size); ((PageHeader) page)->pd_upper = (LocationIndex) size;)

Buffer
ReadBufferWithoutRelcache(RelFileLocator locator, ForkNumber fork, BlockNumber number,
						  ReadBufferMode mode, BufferAccessStrategy strategy, bool permanent)
{
	do_io("reading the page");
	if (!is_read)
		memcpy(buffer, file.page, BLCKSZ);
	is_read = true;
	if (mode == RBM_ZERO_AND_LOCK)
		lock_page(1, BUFFER_LOCK_EXCLUSIVE);
	return 1;
}

FN(void, MarkBufferDirty, (Buffer number), is_dirty = is_read = true; scheduling_point();)

static void
write_page(void)
{
	if (!is_dirty)
		return;
	flushed = Max(flushed, PageGetLSN((Page) buffer));
	memcpy(file.page, buffer, BLCKSZ);
	file.has_page = true;
	is_dirty = is_lost = false;
}

FN(static void, checkpoint, (void), write_page(); synced = file; redo = flushed = inserted;)

/* What other processes do with the page while it is not locked, and with the WAL */
void
storage_events(void)
{
	bool		is_free = content_lock.state.value == 0;

	if (one_in(swarm.standby_1in))
		run_standby();
	if (one_in(300))
		flushed = inserted;
	if (one_in(200) && is_free)
		write_page();
	if (one_in(400) && is_free && !is_lost)
		checkpoint();
	if (one_in(300) && is_free && !is_dirty)
		is_read = false;
	if (one_in(swarm.lose_1in) && is_free && !is_dirty && synced.has_page && !PageIsNew((Page) synced.page))
	{
		trace("the disk has lost the writes since the last checkpoint");
		file = synced;
		is_lost = true;
		is_read = false;
	}
}

/* The file, and the states of the transactions, by the WAL */
static void
replay(void)
{
	latest_completed = swarm.first_xid - 1;
	for (int i = 0; i < n_transactions; i++)
		transactions[i].recovered = TRANSACTION_ABORTED;
	for (int i = 0; i < n_records; i++)
	{
		const Record *record = &wal[i];

		latest_completed = Max(latest_completed, record->xid);
		if (record->type == RECORD_PREPARE)
			transactions[record->transaction].recovered = TRANSACTION_PREPARED;
		else if (record->type == RECORD_COMMIT)
			transactions[record->transaction].recovered = TRANSACTION_COMMITTED;
		else if (record->type == RECORD_CEILING && record->end > redo)
		{
			memset(&file, 0, sizeof(file));
			memcpy(file.page, record->page, CONTENTS);
			PageSetLSN((Page) file.page, record->end);
			file.has_page = true;
		}
	}
	next_xid = next_after(latest_completed);
	synced = file;
	redo = inserted;
}

/* The server starts from the WAL; or another one, where a history forks: a standby, or a backup. */
void
recover(bool forks, bool is_restore)
{
	XLogRecPtr	from = !forks ? flushed : is_restore ? wal[0].end : standby_flushed;
	XLogRecPtr	to = forks ? flushed : inserted;
	XLogRecPtr	end = is_script ? to : from + rnd((int64) (to - from) + 1);

	while (n_records > 1 && wal[n_records - 1].end > end)
		n_records--;
	inserted = flushed = wal[n_records - 1].end;
	standby_flushed = forks ? flushed : Min(standby_flushed, flushed);
	if (forks)
		redo = 0;
	else if (one_in(4))
		file = synced;
	CLEAR(server_data);
	replay();
	trace("recovery%s: the ceiling is " UINT64_FORMAT, forks ? " of another history" : "",
		  ceiling_at(inserted));
	if (!forks && one_in(swarm.lose_page_1in))
	{
		file.has_page = false;
		/* the clock may have been set back */
		if (is_script)
			forget_ids(false, false);
	}
	script("%s\n", forks ? "promote" : file.has_page ? "crash" : "lose_page");
	senders.sync_standbys_status = SYNC_STANDBY_INIT | (swarm.has_standby ? SYNC_STANDBY_DEFINED : 0);
	recover_transactions(forks);
	if (forks)
		forget_ids(true, !is_restore);
	if (forks && !is_restore && swarm.has_worker && !one_in(3))
		recovery_ends = now_ns + rnd_scale(MS, 60 * SEC);
}
