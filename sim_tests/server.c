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
#include "sim.h"

#include <time.h>

#include "access/parallel.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "shmem/slots.h"

#define MAX_HELD		8
#define MAX_ANSWERS		256
#define ARENA_SIZE		(64 * 1024)
#define LW_EXCLUSIVELY	((uint32) 1 << 31)

/* Variables of each process */
PROCESS_LOCAL volatile sig_atomic_t InterruptPending = false;
PROCESS_LOCAL volatile uint32 InterruptHoldoffCount = 0;
PROCESS_LOCAL volatile uint32 CritSectionCount = 0;
PROCESS_LOCAL sigjmp_buf *PG_exception_stack = NULL;
PROCESS_LOCAL ErrorContextCallback *error_context_stack = NULL;
PROCESS_LOCAL MemoryContext CurrentMemoryContext = NULL;
PROCESS_LOCAL PGPROC *MyProc = NULL;
PROCESS_LOCAL struct Latch *MyLatch = NULL;
PROCESS_LOCAL int MyProcPid = 0;
PROCESS_LOCAL int ParallelWorkerNumber = -1;
PROCESS_LOCAL bool InitializingParallelWorker = false;
PROCESS_LOCAL int synchronous_commit = SYNCHRONOUS_COMMIT_ON;
PROCESS_LOCAL NodeSpec configured_node = {{0, 0}, 0};
PROCESS_LOCAL int scru64_rollback_allowance = 10000;
PROCESS_LOCAL char *scru64_realm = "";
PROCESS_LOCAL SnapshotData active_snapshot = {.snapshot_type = SNAPSHOT_MVCC};
PROCESS_LOCAL XactCallback xact_callback = NULL;
PROCESS_LOCAL int error_code = 0;
static PROCESS_LOCAL const char *error_message = NULL;
static PROCESS_LOCAL LWLock *held_locks[MAX_HELD] = {NULL};
static PROCESS_LOCAL int n_held = 0;
static PROCESS_LOCAL int spinlocks = 0;
static PROCESS_LOCAL uint64 own_xid = 0;

/* Variables of the server */
MemoryContext TopTransactionContext = (MemoryContext) 0;
MemoryContext TopMemoryContext = (MemoryContext) 1;
static LWLockPadded main_locks[NUM_INDIVIDUAL_LWLOCKS];
LWLockPadded *MainLWLockArray = main_locks;
PGPROC		procs[MAX_PROCESSES + MAX_PREPARED];
static PROC_HDR proc_header = {.allProcs = procs};
PROC_HDR   *ProcGlobal = &proc_header;
PGPROC	   *PreparedXactProcs = &procs[MAX_PROCESSES];
int			MaxBackends = MAX_PROCESSES;
int			max_prepared_xacts = MAX_PREPARED;
int			max_wal_senders = 1;
char	   *SyncRepStandbyNames = "";
const char *const GucSource_Names[PGC_S_SESSION + 1] = {NULL};
BackgroundWorker *MyBgworkerEntry = NULL;
pg_prng_state pg_global_prng_state;

Latch		latches[MAX_PROCESSES];
bool		is_canceled[MAX_PROCESSES];
uint64		next_xid;
uint64		latest_completed;

static char arenas[MAX_PROCESSES][2][ARENA_SIZE];
static size_t used[MAX_PROCESSES][2];
static ConditionVariable *awaited_cv[MAX_PROCESSES];
static bool is_queued[MAX_PROCESSES];	/* on awaited_cv, and not signaled yet */
static Process *page_owner;
static int	page_locks;
static const char *segment_names[4];
static void *segments[4];
static size_t shared_used;

/*
 * Errors
 */

FAKE(bool, LWLockHeldByMe, (LWLock *lock), for (int i = 0; i < n_held; i++) if (held_locks[i] == lock) return true; return false;)

void
must_be_quiet(const char *what)
{
	if (spinlocks > 0)
		violation("%s under a spinlock", what);
	if (node_slots != NULL && LWLockHeldByMe(&node_slots->lock))
		violation("%s under the lock of the slots", what);
}

FAKE(bool, errstart, (int level, const char *domain), error_code = ERRCODE_INTERNAL_ERROR; return level >= ERROR;)
FAKE(bool, errstart_cold, (int level, const char *domain), return errstart(level, domain);)
FAKE(int, errcode, (int code), error_code = code; return 0;)
FAKE(int, errmsg, (const char *fmt,...), error_message = fmt; return 0;)
FAKE(int, errmsg_internal, (const char *fmt,...), error_message = fmt; return 0;)
FAKE(int, errdetail, (const char *fmt,...), return 0;)
FAKE(int, errdetail_internal, (const char *fmt,...), return 0;)
FAKE(int, errhint, (const char *fmt,...), return 0;)
FAKE(int, geterrcode, (void), return error_code;)
FAKE(void, FlushErrorState, (void), ;)
FAKE(void, pg_re_throw, (void), siglongjmp(*PG_exception_stack, 1);)

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

void
raise_error(int code, const char *message)
{
	error_code = code;
	error_message = message;
	errfinish(NULL, 0, "postgres");
	pg_unreachable();
}

void
ExceptionalCondition(const char *condition, const char *type, const char *file, int line)
{
	violation("assertion in %s: %s", file, condition);
	abort();
}

/* The address of all that no simulated process calls; see the Makefile. */
FAKE(void, not_simulated, (void), fputs("a function is called that is not simulated\n", stderr); abort();)

/*
 * Memory: of the process, and of its transaction
 */

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	int			number = context == TopMemoryContext;
	void	   *at = arenas[me->number][number] + used[me->number][number];

	must_be_quiet("an allocation");
	used[me->number][number] += MAXALIGN(size);
	if (used[me->number][number] > ARENA_SIZE)
		violation("out of memory");
	memset(at, 0x7f, size);
	return at;
}

FAKE(void *, palloc, (Size size), return MemoryContextAlloc(CurrentMemoryContext, size);)
FAKE(void, pfree, (void *at), must_be_quiet("pfree()");)
FAKE(char *, pstrdup, (const char *text), return strcpy(palloc(strlen(text) + 1), text);)
FAKE(char *, psprintf, (const char *fmt,...), return pstrdup(fmt);)
FAKE(const char *, timestamptz_to_str, (TimestampTz time), return "";)
FAKE(void, forget_transaction_memory, (void), used[me->number][0] = 0;)

/* A hash table that is searched from its start */
struct HTAB
{
	Size		keysize;
	long		n;
	char		entries[MAX_ANSWERS][64];
};

HTAB *
hash_create(const char *name, long n, const HASHCTL *control, int flags)
{
	HTAB	   *table = MemoryContextAlloc(control->hcxt, sizeof(HTAB));

	table->keysize = control->keysize;
	table->n = 0;
	return table;
}

void *
hash_search(HTAB *table, const void *key, HASHACTION action, bool *found)
{
	long		i = 0;

	while (i < table->n && memcmp(table->entries[i], key, table->keysize) != 0)
		i++;
	if (i == table->n && action != HASH_ENTER)
		return NULL;
	if (action == HASH_REMOVE)
		memcpy(table->entries[i], table->entries[--table->n], sizeof(table->entries[0]));
	else if (i == table->n && table->n++ < MAX_ANSWERS)
		memcpy(table->entries[i], key, table->keysize);
	return table->entries[i];
}

FAKE(long, hash_get_num_entries, (HTAB *table), return table->n;)
FAKE(void, hash_seq_init, (HASH_SEQ_STATUS *all, HTAB *table), all->hashp = table; all->curBucket = (uint32) table->n;)
/* from the last entry on: the one that was found last may be removed */
FAKE(void *, hash_seq_search, (HASH_SEQ_STATUS *all),
	 return all->curBucket > 0 ? all->hashp->entries[--all->curBucket] : NULL;)

/*
 * Clocks, interrupts
 */

extern int	__wrap_clock_gettime(clockid_t clock, struct timespec *time);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int64		ns = now_ns + (clock == CLOCK_MONOTONIC ? 0 : clock_offset_ns);

	if (clock != CLOCK_MONOTONIC)
		clock_is_read(ns);
	*time = (struct timespec) {.tv_sec = ns / SEC, .tv_nsec = ns % SEC};
	scheduling_point();
	return 0;
}

FAKE(TimestampTz, GetCurrentTimestamp, (void), return time_of_ns(now_ns + clock_offset_ns);)

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

FAKE(int, LWLockNewTrancheId, (void), return LWTRANCHE_FIRST_USER_DEFINED;)
FAKE(void, LWLockRegisterTranche, (int id, const char *name), ;)
FAKE(void, LWLockInitialize, (LWLock *lock, int tranche), memset(lock, 0, sizeof(LWLock));)
FAKE(void, LWLockReleaseAll, (void), while (n_held > 0) LWLockRelease(held_locks[n_held - 1]);)

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	volatile uint32 *state = &lock->state.value;

	scheduling_point();
	must_be_quiet("a lock");
	if (LWLockHeldByMe(lock))
		violation("a lock is taken twice");
	InterruptHoldoffCount++;
	while (mode == LW_EXCLUSIVE ? *state != 0 : (*state & LW_EXCLUSIVELY) != 0)
		sleep_until(NEVER, lock);
	*state = mode == LW_EXCLUSIVE ? LW_EXCLUSIVELY : *state + 1;
	held_locks[n_held++] = lock;
	acquire_view(lock);
	return true;
}

void
LWLockRelease(LWLock *lock)
{
	volatile uint32 *state = &lock->state.value;
	int			i = n_held - 1;

	while (i >= 0 && held_locks[i] != lock)
		i--;
	if (i < 0)
		violation("a lock is released that is not held");
	held_locks[i] = held_locks[--n_held];
	release_view(lock);
	*state = *state == LW_EXCLUSIVELY ? 0 : *state - 1;
	InterruptHoldoffCount--;
	wake(lock);
	scheduling_point();
}

void
spin_acquire(volatile slock_t *lock)
{
	scheduling_point();
	must_be_quiet("a spinlock");
	while (*lock != 0)
		sleep_until(NEVER, lock);
	*lock = 1;
	spinlocks++;
	acquire_view(lock);
}

void
spin_release(volatile slock_t *lock)
{
	release_view(lock);
	*lock = 0;
	spinlocks--;
	wake(lock);
	scheduling_point();
}

/* The only heavyweight lock is that of the ceiling's page. */
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
	acquire_view(&page_owner);
	return page_locks++ > 0 ? LOCKACQUIRE_ALREADY_HELD : LOCKACQUIRE_OK;
}

void
cancel(Process *process)
{
	is_canceled[process->number] = true;
	latches[process->number].is_set = true;
	wake(&latches[process->number]);
	if (process->awaits == &page_owner)
		process->wakes_at = 0;
}

static void
unlock_page(void)
{
	release_view(&page_owner);
	page_owner = NULL;
	page_locks = 0;
	wake(&page_owner);
}

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

FAKE(void, SetLatch, (Latch *latch), scheduling_point(); release_view(latch); latch->is_set = true; wake(latch);)
FAKE(void, ResetLatch, (Latch *latch), acquire_view(latch); latch->is_set = false; scheduling_point();)

int
WaitLatch(Latch *latch, int events, long timeout_ms, uint32 wait_event)
{
	int64		until = now_ns + timeout_ms * MS;

	must_be_quiet("a wait");
	if (n_held > 0 || page_owner == me)
		violation("a wait with a lock");
	while (!latch->is_set && now_ns < until)
		sleep_until(until, latch);
	return latch->is_set ? WL_LATCH_SET : WL_TIMEOUT;
}

FAKE(void, ConditionVariableInit, (ConditionVariable *cv), memset(cv, 0, sizeof(*cv));)
FAKE(void, ConditionVariableCancelSleep, (void), awaited_cv[me->number] = NULL;)

void
ConditionVariablePrepareToSleep(ConditionVariable *cv)
{
	release_view(cv);
	acquire_view(cv);
	awaited_cv[me->number] = cv;
	is_queued[me->number] = true;
	scheduling_point();
}

bool
ConditionVariableTimedSleep(ConditionVariable *cv, long timeout_ms, uint32 wait_event)
{
	int64		until = now_ns + timeout_ms * MS;
	bool		is_signaled;

	if (awaited_cv[me->number] != cv)
	{
		ConditionVariablePrepareToSleep(cv);
		return false;
	}
	while (is_queued[me->number] && now_ns < until)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT, (until - now_ns + MS - 1) / MS, wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	is_signaled = !is_queued[me->number];
	is_queued[me->number] = true;
	return !is_signaled;
}

void
ConditionVariableBroadcast(ConditionVariable *cv)
{
	release_view(cv);
	for (int i = 0; i < MAX_PROCESSES; i++)
	{
		if (awaited_cv[i] != cv || !is_queued[i])
			continue;
		is_queued[i] = false;
		SetLatch(&latches[i]);
	}
	scheduling_point();
}

/*
 * Shared memory
 */

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	int			i = 0;

	while (segments[i] != NULL && strcmp(segment_names[i], name) != 0)
		i++;
	*found = segments[i] != NULL;
	if (*found)
		return segments[i];
	segment_names[i] = name;
	segments[i] = shared_memory + shared_used;
	shared_used += TYPEALIGN(PG_CACHE_LINE_SIZE, size);
	if (shared_used > SHARED_SIZE)
		violation("out of shared memory");
	return segments[i];
}

/*
 * Transactions and snapshots
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

FAKE(void, RegisterXactCallback, (XactCallback callback, void *argument), xact_callback = callback;)
FAKE(TransactionId, GetTopTransactionIdIfAny, (void), return MyProc->xid;)
FAKE(bool, TransactionIdPrecedes, (TransactionId a, TransactionId b), return (int32) (a - b) < 0;)
FAKE(int, xidComparator, (const void *a, const void *b),
	 return (*(const TransactionId *) a > *(const TransactionId *) b) - (*(const TransactionId *) a < *(const TransactionId *) b);)
FAKE(FullTransactionId, ReadNextFullTransactionId, (void), scheduling_point(); return FullTransactionIdFromU64(next_xid);)
FAKE(Snapshot, GetActiveSnapshot, (void), return &active_snapshot;)

/* Lock and unlock the array of processes. */
void
lock_procs(void)
{
	scheduling_point();
	must_be_quiet("the lock of the processes");
	acquire_view(procs);
	release_view(procs);
}

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
 * Others
 */

FAKE(bool, RecoveryInProgress, (void), return false;)
FAKE(void, PreventCommandDuringRecovery, (const char *name), ;)
FAKE(bool, superuser, (void), return true;)
FAKE(void, check_server_settings, (void), ;)
FAKE(const char *, bad_environment_spec, (void), return NULL;)
FAKE(GucSource, own_node_spec_source, (void), return PGC_S_DEFAULT;)
FAKE(GucSource, refused_node_spec_source, (void), return PGC_S_DEFAULT;)
FAKE(const char *, GetConfigOption, (const char *name, bool missing_ok, bool restrict_it), return CppAsString2(PG_VERSION_NUM);)
FAKE(bool, RegisterDynamicBackgroundWorker, (BackgroundWorker *worker, BackgroundWorkerHandle **handle), return true;)
/* now and then so great that the counter is soon full */
FAKE(uint32, pg_prng_uint32, (pg_prng_state *state), return one_in(6) ? PG_UINT32_MAX : rnd(PG_UINT32_MAX);)

/*
 * Starts and ends
 */

void
check_nothing_held(const char *what)
{
	if (n_held > 0 || spinlocks > 0 || page_owner == me || InterruptHoldoffCount != 0)
		violation("%s returns with a lock", what);
	if (CritSectionCount != 0 || awaited_cv[me->number] != NULL)
		violation("%s returns in a critical section, or from a wait that goes on", what);
}

/* What PostgreSQL does after an error */
void
release_everything(void)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
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
	see_all();
	memset(used[me->number], 0, sizeof(used[0]));
	MyProc = &procs[me->number];
	MyProcPid = MyProc->pid = me->number + 1;
	MyLatch = &latches[me->number];
	MyLatch->is_set = is_canceled[me->number] = false;
	/* look for cancels wherever a process can be canceled */
	InterruptPending = true;
}

void
reset_server(void)
{
	reset_memory();
	memset(main_locks, 0, sizeof(main_locks));
	memset(procs, 0, sizeof(procs));
	for (int i = 0; i < lengthof(procs); i++)
		procs[i].pgprocno = i;
	memset(awaited_cv, 0, sizeof(awaited_cv));
	memset(segments, 0, sizeof(segments));
	page_owner = NULL;
	page_locks = 0;
	shared_used = 0;
}
