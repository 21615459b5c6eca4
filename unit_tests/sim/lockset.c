/*-------------------------------------------------------------------------
 *
 * lockset.c
 *		Which lock guards what in shared memory: an access without its lock ends the history.
 *
 * The sources are compiled with -fsanitize=thread, and call the functions at the end here, in place of
 * the sanitizer's, at each access to memory.  Atomics are functions of memory.c, and need no
 * lock but for some writes.  While the memory is made, nothing needs one.  Two atomics keep what
 * others rely on: the limit of a lease, and the bound of an open transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "ceiling_state.h"

/* Locks, as sets.  Whoever holds a lock exclusively holds it shared, too. */
#define SLOTS			0x01	/* NodeSlots.lock */
#define TRANSACTIONS	0x02	/* OpenTransactions.lock */
#define MAILBOX			0x04	/* Mailbox.lock */
#define PAGE			0x08	/* ceiling_page_lock() */
#define MUTEX			0x10	/* CeilingState.mutex */
#define EXCLUSIVE(lock)	((lock) << 8 | (lock))
#define NOBODY			0x10000

/* What guards some bytes of a part, or of a slot */
typedef struct Guard
{
	const SharedPart *part;
	Size		begin, end;		/* end 0: all that is of a constant size */
	uint32		read;			/* one of these locks; 0: none */
	uint32		write;			/* all of them */
} Guard;

#define FIELDS(first, last) \
	offsetof(CeilingState, first), offsetof(CeilingState, last) + sizeof(((CeilingState *) NULL)->last)

/* The first one of an address counts. */
static const Guard guards[] = {
	{&slots_part, 0, 0, SLOTS, EXCLUSIVE(SLOTS)},
	{&leased_part, 0, 0, SLOTS, EXCLUSIVE(SLOTS)},
	{&mailbox_part, 0, 0, MAILBOX, EXCLUSIVE(MAILBOX)},
	{&ceiling_part, FIELDS(written, written), PAGE, PAGE},
	{&ceiling_part, FIELDS(written_at, written_at), PAGE | MUTEX, PAGE | MUTEX},
	{&ceiling_part, FIELDS(awaited, awaited_since), MUTEX, MUTEX},
	{&ceiling_part, 0, 0, 0, NOBODY},
	/* how many entries there are, and the entries of prepared transactions */
	{&transactions_part, 0, 0, 0, NOBODY},
	{&transactions_part, 0, SEGMENT_SIZE, TRANSACTIONS, EXCLUSIVE(TRANSACTIONS)},
};

static const Guard atomic_guards[] = {
	{&ceiling_part, FIELDS(incarnation, incarnation), 0, PAGE},
	{&ceiling_part, FIELDS(durable, durable), 0, PAGE | MUTEX},
	{&ceiling_part, FIELDS(replicated, replicated), 0, MUTEX},
	{&ceiling_part, FIELDS(raising_since, raising_since), 0, PAGE},
};

/* A slot's atomics that change under the lock; the state also by compare-and-swap, without it */
#define STATE_KEY_LIMIT(offset) \
	((offset) == offsetof(NodeSlot, state) || (offset) == offsetof(NodeSlot, key) || (offset) == offsetof(NodeSlot, limit))

/* Of the memory outside of all parts, which is written only when it is made */
static const Guard no_guard = {.write = NOBODY};

FN(static uint32, held_of, (const SharedPart *part, uint32 lock),
   LWLock *at = *part->part; return at == NULL || find_held(at) < 0 ? 0 :
   at->state.value == LW_EXCLUSIVELY ? EXCLUSIVE(lock) : lock;)
FN(static uint32, held, (void),
   return held_of(&slots_part, SLOTS) | held_of(&transactions_part, TRANSACTIONS) | held_of(&mailbox_part, MAILBOX) |
   (page_is_locked() ? PAGE : 0) | (spinlocks > 0 ? MUTEX : 0);)

static const Guard *
guard_of(const char *at, const Guard *guard, int n)
{
	for (const Guard *end = guard + n; guard < end; guard++)
	{
		const char *part = *guard->part->part;

		if (part != NULL && at >= part + guard->begin && at < part + (guard->end != 0 ? guard->end : guard->part->size))
			return guard;
	}
	return NULL;
}

static void
check_guard(const Guard *guard, bool writes, const void *code)
{
	uint32		locks = held();
	char		text[256];
	FILE	   *where;

	if (writes ? (locks & guard->write) == guard->write : guard->read == 0 || (locks & guard->read) != 0)
		return;
	snprintf(text, sizeof(text), "addr2line -e /proc/%d/exe -pfis %p", (int) getpid(), code);
	where = popen(text, "r");
	(void) !fgets(text, sizeof(text), where);
	pclose(where);
	violation("shared memory is %s without its lock by %.*s", writes ? "written" : "read", (int) strcspn(text, "\n"), text);
}

static void
check_access(const char *at, bool writes, const void *code)
{
	const Guard *guard;

	if ((uintptr_t) at - (uintptr_t) shared_memory >= sizeof(shared_memory) || me == NULL ||
		find_held(AddinShmemInitLock) >= 0)
		return;
	guard = guard_of(at, guards, lengthof(guards));
	check_guard(guard != NULL ? guard : &no_guard, writes, (const char *) code - 1);
}

/* Where a process has the bound of its open transaction */
FN(static bool, is_entry, (volatile Atomic *at),
   const char *part = *transactions_part.part; Size offset = (Size) ((const char *) at - part);
   return part != NULL && offset >= transactions_part.size &&
   offset < transactions_part.size + (Size) MaxBackends * sizeof(Atomic);)

/* An atomic is set, not by a compare-and-swap. */
void
check_atomic(volatile Atomic *at, uint64 value, const void *code)
{
	static const Guard slot_guard = {.write = EXCLUSIVE(SLOTS)};
	const Guard *guard = guard_of((const char *) at, atomic_guards, lengthof(atomic_guards));
	Size		offset = (Size) ((const char *) at - (const char *) node_slots) - offsetof(NodeSlots, leased);
	bool		is_limit = node_slots != NULL && at == &node_slots->leased.limit;

	if (offset < sizeof(NodeSlots) - offsetof(NodeSlots, leased) && STATE_KEY_LIMIT(offset % sizeof(NodeSlot)))
		guard = &slot_guard;
	if (guard != NULL)
		check_guard(guard, true, (const char *) code - 1);
	/* sessions read the limit after the state: until the eviction they rely on it */
	if (is_limit && node_slots->leased.key.value != 0 &&
		(value < at->value || !realm_has_leased((NodeKey) node_slots->leased.key.value, value)))
		violation("the limit falls, or is not of the lease that sessions have");
	/* sessions wait for the worker only while they see it busy, or with a standby's lease */
	if (is_limit && !published.busy && !published.is_standby_lease)
		violation("the worker moves the limit, and sessions do not see the worker busy");
	if (value == 0 && transaction >= 0 && transactions[transaction].state == TRANSACTION_OPEN && is_entry(at))
		violation("an open transaction has no bound any more");
}

#define HOOKS(size) \
	FN(void, __tsan_read##size, (void *at), check_access(at, false, __builtin_return_address(0));) \
	FN(void, __tsan_write##size, (void *at), check_access(at, true, __builtin_return_address(0));) \
	FN(void, __tsan_unaligned_read##size, (void *at), check_access(at, false, __builtin_return_address(0));) \
	FN(void, __tsan_unaligned_write##size, (void *at), check_access(at, true, __builtin_return_address(0));)

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
FN(void, __tsan_read_range, (void *at, Size size), check_access(at, false, __builtin_return_address(0));)
FN(void, __tsan_write_range, (void *at, Size size), check_access(at, true, __builtin_return_address(0));)
FN(void, __tsan_func_entry, (void *code),;)
FN(void, __tsan_func_exit, (void),;)
FN(void, __tsan_init, (void),;)
FN(void *, __wrap_memset, (void *at, int c, Size size),
   check_access(at, true, __builtin_return_address(0)); return memset(at, c, size);)
FN(void *, __wrap_memcpy, (void *at, const void *from, Size size),
   check_access(at, true, __builtin_return_address(0)); check_access(from, false, __builtin_return_address(0));
   return memcpy(at, from, size);)
