/*-------------------------------------------------------------------------
 *
 * memory.c
 *		The atomics of the sources: each operation is a scheduling point.
 *
 * With weak memory, a location keeps the values written last, and a process may read an older
 * one, as C11 allows it (release and acquire, without load buffering): unless the process has
 * seen a later one, which is its view.  A value carries the view of its writer at the last
 * release; a reader gets that view by an acquire.  Locks carry views, too.
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
	uint32		last;			/* the number of the newest value, which is in memory, too */
	Value		values[KEPT_VALUES];
} Location;

bool		is_weak = false;
SERVER_LOCAL char shared_memory[SHARED_SIZE] pg_attribute_aligned(PG_CACHE_LINE_SIZE) = {0};

SERVER_LOCAL static Location locations[MAX_LOCATIONS] = {{0}};
SERVER_LOCAL static uint8 location_numbers[SHARED_SIZE / sizeof(uint32)] = {0};	/* from 1 on */
SERVER_LOCAL static int n_locations = 0;
SERVER_LOCAL static const volatile void *locks[MAX_LOCKS] = {NULL};
SERVER_LOCAL static View lock_views[MAX_LOCKS] = {{{0}}};

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

FN(static uint64, read_memory, (const volatile void *at, int size),
   return size == sizeof(uint32) ? *(const volatile uint32 *) at : *(const volatile uint64 *) at;)

/* The location of an atomic in shared memory; NULL if memory is strong. */
static Location *
find_location(const volatile void *at, int size)
{
	uintptr_t	offset = (uintptr_t) at - (uintptr_t) shared_memory;
	uint8	   *number = &location_numbers[offset / sizeof(uint32) % lengthof(location_numbers)];

	scheduling_point();
	if (!is_weak || me == NULL || offset >= SHARED_SIZE)
		return NULL;
	if (*number == 0)
	{
		if (n_locations == MAX_LOCATIONS)
			violation("there are more than %d atomics", MAX_LOCATIONS);
		*number = (uint8) ++n_locations;
		locations[*number - 1].values[0].value = read_memory(at, size);
	}
	return &locations[*number - 1];
}

/* Write a value, which carries a view. */
static void
write_value(volatile void *at, uint64 value, int size, Location *location, const View *view)
{
	if (location != NULL)
	{
		Value	   *newest = &location->values[++location->last % KEPT_VALUES];

		views[me->number].seen[location - locations] = location->last;
		*newest = (Value) {.value = value, .view = *view};
		newest->view.seen[location - locations] = location->last;
	}
	if (size == sizeof(uint32))
		*(volatile uint32 *) at = (uint32) value;
	else
		*(volatile uint64 *) at = value;
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

static View *
view_of_lock(const volatile void *lock)
{
	int			i = 0;

	while (locks[i] != lock && locks[i] != NULL)
		i++;
	locks[i] = lock;
	return &lock_views[i];
}

FN(void, acquire_view, (const volatile void *lock), if (is_weak && me != NULL) join(&views[me->number], view_of_lock(lock));)
FN(void, release_view, (const volatile void *lock), if (is_weak && me != NULL) join(view_of_lock(lock), &views[me->number]);)
FN(void, acquire_fence, (void), scheduling_point(); join(&views[me->number], &acquirable[me->number]);)
FN(void, release_fence, (void), scheduling_point(); released[me->number] = views[me->number];)

uint64
atomic_load(volatile void *at, int size)
{
	Location   *location = find_location(at, size);
	uint32	   *seen;
	uint32		number;

	if (location == NULL)
		return read_memory(at, size);
	seen = &views[me->number].seen[location - locations];
	number = location->last;
	if (one_in(3))
		number -= rnd(Min(number - *seen, KEPT_VALUES - 1) + 1);
	*seen = number;
	join(&acquirable[me->number], &location->values[number % KEPT_VALUES].view);
	return location->values[number % KEPT_VALUES].value;
}

void
atomic_store(volatile void *at, uint64 value, int size)
{
	Location   *location = find_location(at, size);

	write_value(at, value, size, location, location != NULL ? &released[me->number] : NULL);
}

/* An exchange reads the newest value, and is an acquire and a release; a failed one is an acquire. */
bool
atomic_replace(volatile void *at, void *expected, uint64 value, int size)
{
	Location   *location = find_location(at, size);
	uint64		found = read_memory(at, size);
	View	   *view = location != NULL ? &views[me->number] : NULL;

	if (location != NULL)
		join(view, &location->values[location->last % KEPT_VALUES].view);
	if (found == read_memory(expected, size))
	{
		write_value(at, value, size, location, view);
		return true;
	}
	memcpy(expected, &found, (size_t) size);
	return false;
}
