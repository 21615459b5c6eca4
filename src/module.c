/*-------------------------------------------------------------------------
 *
 * module.c
 *		Loading the library: settings, shared memory, the lease worker.
 *
 * Only PostgreSQL calls it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "generate/session_node.h"
#include "settings.h"
#include "shmem/worker_mailbox.h"
#include "shmem/slots.h"
#include "shmem/open_transactions.h"

COMPAT_MODULE_MAGIC("scru64", SCRU64_VERSION);

extern PGDLLEXPORT void _PG_init(void);

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	slots_request();
	RequestAddinShmemSpace(mailbox_size());
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
	slots_attach_anew();
	mailbox_attach_anew();
}

void
_PG_init(void)
{
	settings_define(session_detach);
	transactions_watch();

	if (!process_shared_preload_libraries_in_progress)
		return;
	mailbox_register_worker();
	if (COMPAT_PRELOAD_RESERVES_MEMORY)
	{
		slots_note_reserved();
		prev_shmem_request_hook = shmem_request_hook;
		shmem_request_hook = request_shared_memory;
		prev_shmem_startup_hook = shmem_startup_hook;
		shmem_startup_hook = take_shared_memory;
	}
}
