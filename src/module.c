/*-------------------------------------------------------------------------
 *
 * module.c
 *		_PG_init(): when PostgreSQL loads the library, defines the settings, and adds up the
 *		parts of shared memory.
 *
 * If the server preloads the library, also asks for the shared memory, and registers the lease
 * worker.  Nothing here generates an ID.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "storage/ipc.h"

#include "ceiling/ceiling.h"
#include "generate/session_node.h"
#include "settings.h"
#include "shmem/leased_slot.h"
#include "shmem/open_transactions.h"
#include "shmem/slots.h"
#include "shmem/worker_mailbox.h"

COMPAT_MODULE_MAGIC("scru64", SCRU64_VERSION);

extern PGDLLEXPORT void _PG_init(void);

static const SharedPart *const shared_parts[] = {
	&slots_part, &leased_part, &transactions_part, &mailbox_part, &ceiling_part
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	shared_parts_request();
}

/*
 * Take what was requested.  Until then, the table of locks can grow into this memory, and keeps
 * the memory until the server is restarted.
 */
static void
take_shared_memory(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	shared_parts_attach_anew();
}

void
_PG_init(void)
{
	bool		is_preloaded = process_shared_preload_libraries_in_progress;
	bool		reserves_memory = is_preloaded && COMPAT_PRELOAD_RESERVES_MEMORY;

	shared_parts_define(shared_parts, lengthof(shared_parts), reserves_memory);
	settings_define(session_detach);
	transactions_watch();

	if (!is_preloaded)
		return;
	mailbox_register_worker();
	if (reserves_memory)
	{
		prev_shmem_request_hook = shmem_request_hook;
		shmem_request_hook = request_shared_memory;
		prev_shmem_startup_hook = shmem_startup_hook;
		shmem_startup_hook = take_shared_memory;
	}
}
