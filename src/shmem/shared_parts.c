/*-------------------------------------------------------------------------
 *
 * shared_parts.c
 *		The shared memory of this library: one piece, with a part for each file that keeps
 *		something there.
 *
 * A process attaches all parts at once, on first use.  This raises errors: so a process has
 * attached before it takes a lock.
 *
 * Invariant: all processes of a server that run this version of the library see the same parts, in
 * the same order, with the same sizes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"

#include "shmem/shared_parts.h"

#define MEMORY_NAME			"scru64 shared memory " SHARED_MEMORY_VERSION
#define LAYOUT_NAME			"scru64 layout"

/* All versions of the library share this: neither its name nor its fields ever change. */
typedef struct Layout
{
	char		name[NAMEDATALEN];	/* of the memory of the version that came first */
	pg_atomic_uint32 is_mixed;	/* has another version come since? */
} Layout;

static const SharedPart *const *parts_of_library;
static int	n_parts_of_library;
static bool is_reserved = false;
static int *tranche_id = NULL;	/* at the head of the memory */
static Layout *layout_of_server = NULL;

/*
 * Call this when the library is loaded; reserved if the postmaster reserves the memory, by
 * shared_parts_request(): the same in all processes that preload the library, forked or not.
 */
void
shared_parts_define(const SharedPart *const *parts, int n_parts, bool reserved)
{
	parts_of_library = parts;
	n_parts_of_library = n_parts;
	is_reserved = reserved;
}

/*
 * May a part be of any size?  PostgreSQL 15 and 16 have 100 kB to spare for all libraries that are
 * not preloaded.  All processes have preloaded this library, or none: so they get the same answer.
 */
bool
shared_parts_may_grow(void)
{
	return !COMPAT_PRELOAD_RESERVES_MEMORY || is_reserved;
}

/* Where a part begins, or where the last one ends: its distance from the head, in bytes */
static Size
offset_of(int number)
{
	Size		offset = CACHELINEALIGN(sizeof(*tranche_id));

	for (int i = 0; i < number; i++)
	{
		const SharedPart *part = parts_of_library[i];

		offset += CACHELINEALIGN(part->size + (part->more != NULL ? part->more() : 0));
	}
	return offset;
}

static void
init_memory(void *memory)
{
	int			new_tranche = compat_new_tranche(MEMORY_NAME);

	memset(memory, 0, offset_of(n_parts_of_library));
	*(int *) memory = new_tranche;
	for (int i = 0; i < n_parts_of_library; i++)
	{
		if (parts_of_library[i]->init != NULL)
			parts_of_library[i]->init((char *) memory + offset_of(i), new_tranche);
	}
}

static void
init_layout(void *memory)
{
	Layout	   *layout = memory;

	strlcpy(layout->name, MEMORY_NAME, sizeof(layout->name));
	pg_atomic_init_u32(&layout->is_mixed, 0);
}

/* Have the postmaster reserve the memory, if it preloads the library. */
void
shared_parts_request(void)
{
	RequestAddinShmemSpace(offset_of(n_parts_of_library));
	RequestAddinShmemSpace(sizeof(Layout));
}

/* Attach all parts, unless this process has attached them. */
void
shared_parts_attach(void)
{
	char	   *memory;

	if (tranche_id != NULL)
		return;
	layout_of_server = compat_shared_memory(LAYOUT_NAME, sizeof(Layout), init_layout);
	if (strcmp(layout_of_server->name, MEMORY_NAME) != 0)
		pg_atomic_write_u32(&layout_of_server->is_mixed, 1);
	memory = compat_shared_memory(MEMORY_NAME, offset_of(n_parts_of_library), init_memory);
	for (int i = 0; i < n_parts_of_library; i++)
		*parts_of_library[i]->part = memory + offset_of(i);
	compat_name_tranche(*(int *) memory, MEMORY_NAME);
	tranche_id = (int *) memory;
}

/*
 * Attach the shared memory that the postmaster has just made: the first one, or another one after
 * a crash, in which the earlier addresses are wrong.
 */
void
shared_parts_attach_anew(void)
{
	tranche_id = NULL;
	shared_parts_attach();
}

/* Has another version of the library attached its own memory since the server was started? */
bool
shared_parts_are_mixed(void)
{
	shared_parts_attach();
	return pg_atomic_read_u32(&layout_of_server->is_mixed) != 0;
}
