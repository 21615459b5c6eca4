/*-------------------------------------------------------------------------
 *
 * server.c
 *		In place of PostgreSQL: what the sources call of it.
 *
 * Each lock, each wait and whatever may take time is a scheduling point.  What must not happen
 * under the lock of the slots or under a spinlock (errors, memory, waits, I/O, other locks) is
 * a violation.
 *
 *-------------------------------------------------------------------------
 */

#define MAX_PREPARED	3
#define MAX_HELD		8
#define ARENA_SIZE		(64 * 1024)
#define LW_EXCLUSIVELY	((uint64) 1 << 63)

/* Variables of each process */
PROCESS_LOCAL volatile sig_atomic_t InterruptPending = false;
PROCESS_LOCAL volatile uint32 InterruptHoldoffCount = 0, CritSectionCount = 0;
PROCESS_LOCAL sigjmp_buf *PG_exception_stack = NULL;
PROCESS_LOCAL ErrorContextCallback *error_context_stack = NULL;
PROCESS_LOCAL MemoryContext CurrentMemoryContext = NULL;
PROCESS_LOCAL PGPROC *MyProc = NULL;
PROCESS_LOCAL struct Latch *MyLatch = NULL;
PROCESS_LOCAL int MyProcPid = 0, ParallelWorkerNumber = -1, synchronous_commit = SYNCHRONOUS_COMMIT_ON;
PROCESS_LOCAL NodeSpec configured_node = {{0, 0}, 0};
#include "settings_variables.h"
PROCESS_LOCAL SnapshotData active_snapshot = {.snapshot_type = SNAPSHOT_MVCC};
PROCESS_LOCAL XactCallback xact_callback = NULL;
PROCESS_LOCAL int error_code = 0;
PROCESS_LOCAL static const char *error_message = NULL;
PROCESS_LOCAL static LWLock *held_locks[MAX_HELD] = {NULL};
PROCESS_LOCAL static int n_held = 0, spinlocks = 0;
PROCESS_LOCAL static uint64 own_xid = 0;

/* Variables of the server */
SyncRepConfigData *SyncRepConfig = NULL;
MemoryContext TopTransactionContext = (MemoryContext) 0, TopMemoryContext = (MemoryContext) 1;
SERVER_LOCAL static LWLockPadded main_locks[NUM_INDIVIDUAL_LWLOCKS] = {{{0}}};
LWLockPadded *MainLWLockArray = main_locks;
SERVER_LOCAL PGPROC procs[MAX_PROCESSES + MAX_PREPARED] = {0};
PROC_HDR   *ProcGlobal = &(PROC_HDR) {.allProcs = procs};
PGPROC	   *PreparedXactProcs = &procs[MAX_PROCESSES];
int			MaxBackends = MAX_PROCESSES, max_prepared_xacts = MAX_PREPARED, max_wal_senders = 1;
BackgroundWorker *MyBgworkerEntry = &(BackgroundWorker) {.bgw_restart_time = BGW_NEVER_RESTART};

SERVER_LOCAL static int64 recovery_ends = 0;	/* a standby's worker runs before that */
SERVER_LOCAL bool is_canceled[MAX_PROCESSES] = {0};
uint64		next_xid, latest_completed;

static char arenas[MAX_PROCESSES][2][ARENA_SIZE];	/* memory of a transaction, and of its process */
static size_t used[MAX_PROCESSES][2];
SERVER_LOCAL static Process *page_owner = NULL;
SERVER_LOCAL static int page_locks = 0;
SERVER_LOCAL static LOCKMODE page_mode = NoLock;
SERVER_LOCAL static const char *segment_names[MAX_SEGMENTS + 1] = {NULL};

/*
 * Errors
 */

/* The number of a lock, from 0 on; -1: this process does not hold the lock. */
FN(static int, find_held, (LWLock *lock),
   int i = n_held - 1; while (i >= 0 && held_locks[i] != lock) i--; return i;)

void
must_be_quiet(const char *what)
{
	if (spinlocks > 0)
		violation("%s under a spinlock", what);
	/* each begins with its lock */
	if (find_held((LWLock *) node_slots) >= 0 || find_held(*(LWLock **) mailbox_part.part) >= 0)
		violation("%s under the lock of the slots or of the mailbox", what);
}

FN(ErrorData *, CopyErrorData, (void), static ErrorData error = {.message = "failed"}; return &error;)
FN(bool, errstart, (int level, const char *domain),
   error_code = ERRCODE_INTERNAL_ERROR; return level >= ERROR;)
FN(char *, unpack_sql_state, (int state),
   static char text[6]; for (int i = 0; i < 5; i++) text[i] = PGUNSIXBIT(state >> 6 * i); return text;)
FN(int, errcode, (int code), error_code = code; return 0;)
FN(int, errmsg, (const char *fmt,...), error_message = fmt; return 0;)
FN(void, pg_re_throw, (void), siglongjmp(*PG_exception_stack, 1);)

void
errfinish(const char *file, int line, const char *function)
{
	trace("error in %s(): %s", function, error_message);
	must_be_quiet("an error");
	if (error_code == ERRCODE_INTERNAL_ERROR || error_code == ERRCODE_DATA_CORRUPTED)
		violation("unexpected error: %s", error_message);
	if (CritSectionCount > 0)
		crash("an error in a critical section");
	pg_re_throw();
}

FN(void, raise_error, (int code, const char *message),
   error_code = code; error_message = message; errfinish("", 0, "postgres"); abort();)
/* PostgreSQL 15 has the type of the condition before the file. */
FN(void, assertion_failed, (const char *condition, const char *type, const char *file),
   violation("assertion in %s: %s", strcmp(type, "FailedAssertion") == 0 ? file : type, condition); abort();)

/* What the Makefile has in place of many functions: NOT_CALLED, RETURN_0, RETURN_1 */
FN(void, not_simulated, (void), fputs("a function is called that is not simulated\n", stderr); abort();)
FN(intptr_t, returns_0, (void), return 0;)
FN(intptr_t, returns_1, (void), return 1;)

/*
 * Memory of the process, of its transaction, and of the server
 */

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	size_t	   *end = &used[me->number][context == TopMemoryContext];
	void	   *at = &arenas[me->number][context == TopMemoryContext][*end];

	must_be_quiet("an allocation");
	*end += MAXALIGN(size);
	if (*end > ARENA_SIZE)
		violation("out of memory");
	return memset(at, 0x7f, size);
}

FN(void *, palloc, (Size size), return MemoryContextAlloc(CurrentMemoryContext, size);)
FN(void, pfree, (void *at), must_be_quiet("pfree()");)
FN(char *, pstrdup, (const char *text), return strcpy(palloc(strlen(text) + 1), text);)
FN(char *, psprintf, (const char *fmt,...),
   char text[256]; va_list arguments; va_start(arguments, fmt); vsnprintf(text, sizeof(text), fmt, arguments);
   va_end(arguments); return pstrdup(text);)
FN(const char *, timestamptz_to_str, (TimestampTz time), return "";)
FN(void, forget_transaction_memory, (void), used[me->number][0] = 0;)

/* A hash table that forgets all but the entry found last: the session asks the server again. */
FN(HTAB *, hash_create, (const char *name, long n, const HASHCTL *control, int flags),
   return MemoryContextAlloc(control->hcxt, control->entrysize);)

void *
hash_search(HTAB *table, const void *key, HASHACTION action, bool *found)
{
	if (action == HASH_ENTER)
		memcpy(table, key, sizeof(SnapshotPosition));
	return memcmp(table, key, sizeof(SnapshotPosition)) == 0 ? table : NULL;
}

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	int			i = 0;

	while (segment_names[i] != NULL && strcmp(segment_names[i], name) != 0)
		i++;
	if (i == MAX_SEGMENTS || size > SEGMENT_SIZE)
		violation("out of shared memory");
	*found = segment_names[i] != NULL;
	segment_names[i] = name;
	return shared_memory[i];
}

/* From PostgreSQL 17 on; from 19 on, init() has the last argument, too. */
void *
named_segment(const char *name, Size size, void (*init) (void *, void *), bool *found, void *argument)
{
	void	   *memory;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct(name, size, found);
	if (!*found)
		init(memory, argument);
	LWLockRelease(AddinShmemInitLock);
	return memory;
}

/*
 * Clocks, interrupts
 */

FN(TimestampTz, time_of_ns, (int64 ns),
   return ns / 1000 - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;)

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int64		ns = now_ns + (clock == CLOCK_MONOTONIC ? 0 : clock_offset_ns);

	if (clock != CLOCK_MONOTONIC)
	{
		highest_clock = Max(highest_clock, ns);
		highest_since = Max(highest_since, ns);
	}
	*time = (struct timespec) {.tv_sec = ns / SEC, .tv_nsec = ns % SEC};
	scheduling_point();
	return 0;
}

FN(TimestampTz, GetCurrentTimestamp, (void), return time_of_ns(now_ns + clock_offset_ns);)

/* Processes look for cancels where they wait for the page or a latch. */
FN(void, cancel, (Process *process),
   is_canceled[process->number] = true; SetLatch(&procs[process->number].procLatch);
   if (process->awaits == &page_owner) process->wakes_at = 0;)

void
ProcessInterrupts(void)
{
	if (InterruptHoldoffCount != 0 || CritSectionCount != 0 || !is_canceled[me->number])
		return;
	is_canceled[me->number] = false;
	raise_error(ERRCODE_QUERY_CANCELED, "canceled");
}

/*
 * Locks
 */

FN(bool, LWLockHeldByMe, (LWLock *lock), return find_held(lock) >= 0;)
FN(bool, LWLockHeldByMeInMode, (LWLock *lock, LWLockMode mode),
   return find_held(lock) >= 0 && (lock->state.value == LW_EXCLUSIVELY) == (mode == LW_EXCLUSIVE);)
FN(void, LWLockReleaseAll, (void), while (n_held > 0) LWLockRelease(held_locks[n_held - 1]);)

/* Wait until a lock or spinlock is free, and take it. */
static void
take(volatile uint64 *state, bool is_shared, const char *what)
{
	scheduling_point();
	must_be_quiet(what);
	while (is_shared ? *state == LW_EXCLUSIVELY : *state != 0)
		sleep_until(NEVER, state);
	*state = is_shared ? *state + 1 : LW_EXCLUSIVELY;
	acquire_view(state);
}

FN(static void, give_back, (volatile uint64 *state),
   *state = *state == LW_EXCLUSIVELY ? 0 : *state - 1; wake(state); scheduling_point();)
FN(void, SpinLockAcquire, (volatile slock_t *lock), take(lock, false, "a spinlock"); spinlocks++;)
FN(void, SpinLockRelease, (volatile slock_t *lock), spinlocks--; give_back(lock);)

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	if (find_held(lock) >= 0)
		violation("a lock is taken twice");
	InterruptHoldoffCount++;
	take(&lock->state.value, mode == LW_SHARED, "a lock");
	held_locks[n_held++] = lock;
	return true;
}

void
LWLockRelease(LWLock *lock)
{
	int			i = find_held(lock);

	if (i < 0)
		violation("a lock is released that is not held");
	held_locks[i] = held_locks[--n_held];
	InterruptHoldoffCount--;
	give_back(&lock->state.value);
}

/* The only heavyweight lock is that of the ceiling's page.  In no mode do two processes hold it. */
LockAcquireResult
LockAcquire(const LOCKTAG *tag, LOCKMODE mode, bool is_session_lock, bool dont_wait)
{
	scheduling_point();
	must_be_quiet("a heavyweight lock");
	while (page_owner != NULL && page_owner != me)
	{
		if (dont_wait)
			return LOCKACQUIRE_NOT_AVAIL;
		sleep_until(NEVER, &page_owner);
		CHECK_FOR_INTERRUPTS();
	}
	page_owner = me;
	page_mode = mode;
	acquire_view(&page_owner);
	return page_locks++ > 0 ? LOCKACQUIRE_ALREADY_HELD : LOCKACQUIRE_OK;
}

FN(static void, unlock_page, (void), page_owner = NULL; page_locks = 0; wake(&page_owner);)

bool
LockRelease(const LOCKTAG *tag, LOCKMODE mode, bool is_session_lock)
{
	if (page_owner != me)
		violation("the page is unlocked by a process that has not locked it");
	end_set(false);
	if (--page_locks == 0)
		unlock_page();
	scheduling_point();
	return true;
}

/*
 * Waits
 */

FN(void, SetLatch, (Latch *latch), scheduling_point(); latch->is_set = true; wake(latch);)
FN(void, ResetLatch, (Latch *latch), acquire_view(latch); latch->is_set = false; scheduling_point();)

static void
check_wait(void)
{
	must_be_quiet("a wait");
	if (n_held > 0 || page_owner == me)
		violation("a wait with a lock");
	if (is_script)
		raise_error(ERRCODE_QUERY_CANCELED, "the clock stands");
}

int
WaitLatch(Latch *latch, int events, long timeout_ms, uint32 wait_event)
{
	int64		until = events & WL_TIMEOUT ? now_ns + timeout_ms * MS : NEVER;

	check_wait();
	if (me->number == swarm.sessions)
		worker_sleeps(events & WL_TIMEOUT ? timeout_ms : 0);
	while (!latch->is_set && now_ns < until)
		sleep_until(until, latch);
	return latch->is_set ? WL_LATCH_SET : WL_TIMEOUT;
}

/* Whoever waits for a condition variable looks again after a while, also without a broadcast. */
FN(void, ConditionVariablePrepareToSleep, (ConditionVariable *cv), scheduling_point();)
FN(void, ConditionVariableBroadcast, (ConditionVariable *cv), wake(cv); scheduling_point();)

bool
ConditionVariableTimedSleep(ConditionVariable *cv, long timeout_ms, uint32 wait_event)
{
	int64		until = now_ns + timeout_ms * MS;

	check_wait();
	sleep_until(until, cv);
	acquire_view(cv);
	CHECK_FOR_INTERRUPTS();
	return now_ns >= until;
}

/*
 * Transactions, snapshots, others
 */

/* The next transaction: after 2^32 of them, three numbers are left out. */
uint64
next_after(uint64 xid)
{
	return (uint32) (xid + 1) < FirstNormalTransactionId ? xid + 1 + FirstNormalTransactionId : xid + 1;
}

FullTransactionId
GetTopFullTransactionId(void)
{
	if (MyProc->xid == InvalidTransactionId)
	{
		scheduling_point();
		own_xid = next_xid;
		MyProc->xid = (TransactionId) own_xid;
		next_xid = next_after(next_xid);
		scheduling_point();
	}
	return FullTransactionIdFromU64(own_xid);
}

FN(void, RegisterXactCallback, (XactCallback callback, void *argument), xact_callback = callback;)
FN(TransactionId, GetTopTransactionIdIfAny, (void), return MyProc->xid;)
FN(bool, xid_precedes, (TransactionId a, TransactionId b), return (int32) (a - b) < 0;)
FN(int, xidComparator, (const void *a, const void *b),
   TransactionId left = *(const TransactionId *) a; TransactionId right = *(const TransactionId *) b;
   return (left > right) - (left < right);)
FN(FullTransactionId, ReadNextFullTransactionId, (void),
   scheduling_point(); return FullTransactionIdFromU64(next_xid);)
FN(bool, RecoveryInProgress, (void), return now_ns < recovery_ends;)
FN(bool, ActiveSnapshotSet, (void), return true;)
FN(Snapshot, GetActiveSnapshot, (void), return &active_snapshot;)
/* server_version_num, whatever the headers are of */
FN(const char *, GetConfigOption, (const char *name, bool missing_ok, bool restrict_it), return "180000";)
/* now and then so great that the counter is soon full */
FN(uint32, pg_prng_uint32, (pg_prng_state *state),
   return one_in(6) && !is_script ? PG_UINT32_MAX : rnd(PG_UINT32_MAX);)

/* Lock and unlock the array of processes. */
FN(void, lock_procs, (void),
   scheduling_point(); must_be_quiet("ProcArrayLock"); acquire_view(procs); release_view(procs);)

bool
TransactionIdIsInProgress(TransactionId xid)
{
	lock_procs();
	for (int i = 0; i < lengthof(procs); i++)
	{
		if (procs[i].xid == xid)
			return true;
	}
	return false;
}

Snapshot
GetSnapshotData(Snapshot snapshot)
{
	lock_procs();
	if (snapshot->xip == NULL)
		snapshot->xip = MemoryContextAlloc(TopMemoryContext, sizeof(TransactionId) * lengthof(procs));
	snapshot->xcnt = 0;
	snapshot->xmin = snapshot->xmax = (TransactionId) next_after(latest_completed);
	for (int i = 0; i < lengthof(procs); i++)
	{
		TransactionId xid = procs[i].xid;

		if (xid == InvalidTransactionId || !TransactionIdPrecedes(xid, snapshot->xmax))
			continue;
		if (TransactionIdPrecedes(xid, snapshot->xmin))
			snapshot->xmin = xid;
		if (&procs[i] != MyProc)
			snapshot->xip[snapshot->xcnt++] = xid;
	}
	if (MyProc->xmin == InvalidTransactionId)
		MyProc->xmin = snapshot->xmin;
	return snapshot;
}

/*
 * Starts and ends
 */

void
check_nothing_held(void)
{
	if (n_held > 0 || spinlocks > 0 || page_owner == me || InterruptHoldoffCount + CritSectionCount != 0)
		violation("a call returns with a lock");
}

/* What PostgreSQL does after an error */
void
release_everything(void)
{
	end_set(true);
	LWLockReleaseAll();
	if (spinlocks > 0)
		violation("an error leaves a spinlock");
	if (page_owner == me)
		unlock_page();
	InterruptHoldoffCount = CritSectionCount = 0;
	error_context_stack = NULL;
	CurrentMemoryContext = TopTransactionContext;
}

void
begin_process(void)
{
	static const SharedPart *const parts[] = {&slots_part, &leased_part, &transactions_part, &mailbox_part, &ceiling_part};

	see_all();
	shared_parts_define(parts, lengthof(parts), false);
	used[me->number][0] = used[me->number][1] = 0;
	MyProc = &procs[me->number];
	MyProcPid = MyProc->pid = me->number + 1;
	MyLatch = &MyProc->procLatch;
	MyLatch->is_set = is_canceled[me->number] = false;
	/* look for cancels wherever a process can be canceled */
	InterruptPending = true;
}
