/*-------------------------------------------------------------------------
 *
 * memory.c
 *		The atomics of the sources: each operation is a scheduling point.
 *
 * With weak memory, a location keeps the values written last, and a process may read an older
 * one, as C11 allows it without barriers (release and acquire, without load buffering): unless
 * the process has seen a later one, which is its view.  A value carries the view that its
 * writer had at its last release.  A reader gets that view by an acquire.  Locks carry views,
 * too.  A write is always the newest value, and the memory itself has the newest.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#define MAX_LOCATIONS	160
#define MAX_LOCKS		64
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
	uint32		last;			/* the number of the newest value */
	Value		values[KEPT_VALUES];
} Location;

typedef struct LockView
{
	const volatile void *lock;
	View		view;
} LockView;

char		shared_memory[SHARED_SIZE] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
bool		is_weak = false;

static Location locations[MAX_LOCATIONS];
static uint8 location_numbers[SHARED_SIZE / sizeof(uint32)];	/* by place, plus 1 */
static int	n_locations;
static LockView lock_views[MAX_LOCKS];
static int	n_lock_views;

/* What each process has seen; what an acquire would add; and what others get to see of it */
static View views[MAX_PROCESSES];
static View acquirable[MAX_PROCESSES];
static View released[MAX_PROCESSES];

static void
join(View *view, const View *other)
{
	for (int i = 0; i < n_locations; i++)
		view->seen[i] = Max(view->seen[i], other->seen[i]);
}

static uint64
read_memory(const volatile void *at, int size)
{
	return size == sizeof(uint32) ? *(const volatile uint32 *) at : *(const volatile uint64 *) at;
}

static void
write_memory(volatile void *at, uint64 value, int size)
{
	if (size == sizeof(uint32))
		*(volatile uint32 *) at = (uint32) value;
	else
		*(volatile uint64 *) at = value;
}

/* The location of an atomic in shared memory; NULL if memory is strong. */
static Location *
find_location(const volatile void *at, int size)
{
	uintptr_t	offset = (uintptr_t) at - (uintptr_t) shared_memory;
	Location   *location;

	scheduling_point();
	if (!is_weak || me == NULL || offset >= SHARED_SIZE)
		return NULL;
	if (location_numbers[offset / sizeof(uint32)] == 0)
	{
		if (n_locations == MAX_LOCATIONS)
			violation("there are more than %d atomics", MAX_LOCATIONS);
		location = &locations[n_locations++];
		memset(location, 0, sizeof(Location));
		location->at = at;
		location->values[0].value = read_memory(at, size);
		location_numbers[offset / sizeof(uint32)] = (uint8) n_locations;
	}
	return &locations[location_numbers[offset / sizeof(uint32)] - 1];
}

static void
append(Location *location, uint64 value, View *view)
{
	Value	   *newest = &location->values[++location->last % KEPT_VALUES];

	views[me->number].seen[location - locations] = location->last;
	newest->value = value;
	newest->view = *view;
	newest->view.seen[location - locations] = location->last;
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

void
reset_memory(void)
{
	memset(shared_memory, 0, SHARED_SIZE);
	memset(location_numbers, 0, sizeof(location_numbers));
	memset(views, 0, sizeof(views));
	n_locations = 0;
	n_lock_views = 0;
}

static View *
view_of_lock(const volatile void *lock)
{
	for (int i = 0; i < n_lock_views; i++)
	{
		if (lock_views[i].lock == lock)
			return &lock_views[i].view;
	}
	if (n_lock_views == MAX_LOCKS)
		violation("there are more than %d locks", MAX_LOCKS);
	lock_views[n_lock_views] = (LockView) {.lock = lock};
	return &lock_views[n_lock_views++].view;
}

void
acquire_view(const volatile void *lock)
{
	if (is_weak && me != NULL)
		join(&views[me->number], view_of_lock(lock));
}

void
release_view(const volatile void *lock)
{
	if (is_weak && me != NULL)
		join(view_of_lock(lock), &views[me->number]);
}

void
acquire_fence(void)
{
	scheduling_point();
	if (is_weak && me != NULL)
		join(&views[me->number], &acquirable[me->number]);
}

void
release_fence(void)
{
	scheduling_point();
	if (is_weak && me != NULL)
		released[me->number] = views[me->number];
}

uint64
atomic_load(volatile void *at, int size)
{
	Location   *location = find_location(at, size);
	uint32	   *seen;
	uint32		number;
	uint32		oldest;

	if (location == NULL)
		return read_memory(at, size);
	seen = &views[me->number].seen[location - locations];
	number = location->last;
	oldest = number < KEPT_VALUES ? 0 : number - KEPT_VALUES + 1;
	oldest = Max(oldest, *seen);
	if (one_in(3))
		number -= rnd(number - oldest + 1);
	*seen = number;
	join(&acquirable[me->number], &location->values[number % KEPT_VALUES].view);
	return location->values[number % KEPT_VALUES].value;
}

void
atomic_store(volatile void *at, uint64 value, int size)
{
	Location   *location = find_location(at, size);

	if (location != NULL)
		append(location, value, &released[me->number]);
	write_memory(at, value, size);
}

/* Reads the newest value, and is an acquire and a release. */
static void
read_and_write(volatile void *at, uint64 value, int size, Location *location)
{
	if (location != NULL)
		append(location, value, &views[me->number]);
	write_memory(at, value, size);
}

static void
see_newest(Location *location)
{
	if (location != NULL)
		join(&views[me->number], &location->values[location->last % KEPT_VALUES].view);
}

bool
atomic_replace(volatile void *at, void *expected, uint64 value, int size)
{
	Location   *location = find_location(at, size);
	uint64		found = read_memory(at, size);
	bool		is_expected = found == read_memory(expected, size);

	see_newest(location);
	if (is_expected)
		read_and_write(at, value, size, location);
	else
		write_memory(expected, found, size);
	return is_expected;
}

uint64
atomic_exchange(volatile void *at, uint64 value, int size)
{
	Location   *location = find_location(at, size);
	uint64		found = read_memory(at, size);

	see_newest(location);
	read_and_write(at, value, size, location);
	return found;
}
