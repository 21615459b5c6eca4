/*-------------------------------------------------------------------------
 *
 * memory.c
 *		The atomics of the sources: each operation is a scheduling point.
 *
 * With weak memory, a location keeps the values written last, and a process may read an older
 * one, as C11 allows it (release and acquire, without load buffering): unless the process has
 * seen a later one, which is its view.  A value carries the view of its writer at the last
 * release; a reader gets that view by an acquire.  A lock is a location, too, whose only value
 * carries a view.
 *
 *-------------------------------------------------------------------------
 */

#define MAX_SEGMENTS	2
#define SEGMENT_SIZE	(16 * 1024)
#define MAX_LOCATIONS	192
#define KEPT_VALUES		4

/* The number of the value that was seen last, of each location */
typedef struct View
{
	uint32		seen[MAX_LOCATIONS];
} View;

typedef struct Value
{
	uint64		value;
	View		view;
} Value;

typedef struct Location
{
	const volatile void *at;
	uint32		last;			/* the number of the newest value, which is in memory, too */
	Value		values[KEPT_VALUES];
} Location;

bool		is_weak = false;
SERVER_LOCAL char shared_memory[MAX_SEGMENTS][SEGMENT_SIZE] pg_attribute_aligned(PG_CACHE_LINE_SIZE) = {{0}};

SERVER_LOCAL static Location locations[MAX_LOCATIONS] = {{0}};
SERVER_LOCAL static int n_locations = 0;

/* What each process has seen; what an acquire would add; and its view at the last release */
SERVER_LOCAL static View views[MAX_PROCESSES] = {{{0}}};
SERVER_LOCAL static View acquirable[MAX_PROCESSES] = {{{0}}};
SERVER_LOCAL static View released[MAX_PROCESSES] = {{{0}}};

static void
join(View *view, const View *other)
{
	for (int i = 0; i < n_locations; i++)
		view->seen[i] = Max(view->seen[i], other->seen[i]);
}

static Location *
location_of(const volatile void *at)
{
	int			i = 0;

	while (i < n_locations && locations[i].at != at)
		i++;
	if (i == MAX_LOCATIONS)
		violation("there are more than %d atomics and locks", MAX_LOCATIONS);
	n_locations = Max(n_locations, i + 1);
	locations[i].at = at;
	return &locations[i];
}

/* The location of an atomic in shared memory; NULL if memory is strong. */
static Location *
find_atomic(volatile Atomic *at)
{
	Location   *location;

	scheduling_point();
	if (!is_weak || me == NULL || (uintptr_t) at - (uintptr_t) shared_memory >= sizeof(shared_memory))
		return NULL;
	location = location_of(at);
	if (location->last == 0)
		location->values[0].value = at->value;
	return location;
}

/* Write a value, which carries one of the views of its writer. */
static void
write_value(volatile Atomic *at, uint64 value, Location *location, const View *views_of_all)
{
	if (location != NULL)
	{
		Value	   *newest = &location->values[++location->last % KEPT_VALUES];

		views[me->number].seen[location - locations] = location->last;
		*newest = (Value) {.value = value, .view = views_of_all[me->number]};
		newest->view.seen[location - locations] = location->last;
	}
	at->value = value;
}

/* All has been seen by a process that begins. */
void
see_all(void)
{
	memset(&acquirable[me->number], 0, sizeof(View));
	memset(&released[me->number], 0, sizeof(View));
	for (int i = 0; i < n_locations; i++)
		views[me->number].seen[i] = locations[i].last;
}

FN(void, acquire_view, (const volatile void *lock),
   if (is_weak && me != NULL) join(&views[me->number], &location_of(lock)->values[0].view);)
FN(void, release_view, (const volatile void *lock),
   if (is_weak && me != NULL) join(&location_of(lock)->values[0].view, &views[me->number]);)
FN(void, acquire_fence, (void), scheduling_point(); join(&views[me->number], &acquirable[me->number]);)
FN(void, release_fence, (void), scheduling_point(); released[me->number] = views[me->number];)

uint64
atomic_load(volatile Atomic *at)
{
	Location   *location = find_atomic(at);
	uint32	   *seen;
	uint32		number;

	if (location == NULL)
		return at->value;
	seen = &views[me->number].seen[location - locations];
	number = location->last;
	if (one_in(swarm.stale_1in))
		number -= rnd(Min(number - *seen, KEPT_VALUES - 1) + 1);
	*seen = number;
	join(&acquirable[me->number], &location->values[number % KEPT_VALUES].view);
	return location->values[number % KEPT_VALUES].value;
}

FN(void, atomic_store, (volatile Atomic *at, uint64 value),
   check_atomic(at, value, __builtin_return_address(0)); write_value(at, value, find_atomic(at), released);)

/* An exchange reads the newest value, and is an acquire and a release; a failed one is an acquire. */
bool
atomic_replace(volatile Atomic *at, uint64 *expected, uint64 value)
{
	Location   *location = find_atomic(at);
	uint64		found = at->value;
	bool		is_replaced = found == *expected;

	if (location != NULL)
		join(&views[me->number], &location->values[location->last % KEPT_VALUES].view);
	if (is_replaced)
		write_value(at, value, location, views);
	*expected = found;
	return is_replaced;
}

uint64
atomic_change(volatile Atomic *at, uint64 value, bool adds)
{
	uint64		old = at->value;

	if (!adds)
		check_atomic(at, value, __builtin_return_address(0));
	while (!atomic_replace(at, &old, adds ? old + value : value))
		;
	return old;
}
