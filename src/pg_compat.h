/*-------------------------------------------------------------------------
 *
 * pg_compat.h
 *		The differences between PostgreSQL 15, 16, 17, 18 and 19.
 *
 * Every test of PG_VERSION_NUM in the project is in this file.  Include it right
 * after postgres.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PG_COMPAT_H
#define PG_COMPAT_H

#include "fmgr.h"

#if PG_VERSION_NUM < 150000
#error "scru64 requires PostgreSQL 15 or later"
#endif

/* The macros of variable-length types left postgres.h with 16. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Soft errors came with 16.  Before, a bad input is an ordinary error. */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#else
#define ereturn(context, dummy_value, ...) \
	do { \
		(void) (context); \
		ereport(ERROR, __VA_ARGS__); \
		return dummy_value; \
	} while (0)
#endif

/*
 * 16 renamed the types and functions of a relation's files, 17 the number of no
 * process.
 */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "utils/relfilenumbermap.h"
#else
#include "storage/relfilenode.h"
#include "utils/relfilenodemap.h"
typedef RelFileNode RelFileLocator;
typedef PGAlignedBlock PGIOAlignedBlock;
#define RelidByRelfilenumber	RelidByRelfilenode
#endif
#if PG_VERSION_NUM < 170000
#include "storage/backendid.h"
#define INVALID_PROC_NUMBER		InvalidBackendId
#endif

/* A setting, or the placeholder of an undefined one; NULL if there is neither. */
#include "utils/guc_tables.h"
#if PG_VERSION_NUM >= 160000
#define compat_find_setting(name) find_option(name, false, true, ERROR)
#else
static inline struct config_generic *
compat_find_setting(const char *name)
{
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (pg_strcasecmp(settings[i]->name, name) == 0)
			return settings[i];
	return NULL;
}
#endif

/*
 * Shared memory without preloading: a named DSM segment from 17 on, in 15 and 16
 * the spare bytes of the main segment.
 */
#define COMPAT_PRELOAD_RESERVES_MEMORY (PG_VERSION_NUM < 170000)
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#else
#include "storage/lwlock.h"
#include "storage/shmem.h"
#endif

#if PG_VERSION_NUM >= 190000
/* From 19 on, the callback has an argument of its own. */
static inline void
compat_init_segment(void *memory, void *init)
{
	(*(void (**) (void *)) init) (memory);
}
#endif

static inline void *
compat_shared_memory(const char *name, Size size, void (*init) (void *))
{
	bool		found;

#if PG_VERSION_NUM >= 190000
	return GetNamedDSMSegment(name, size, compat_init_segment, &found, &init);
#elif PG_VERSION_NUM >= 170000
	return GetNamedDSMSegment(name, size, init, &found);
#else
	void	   *memory;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct(name, size, &found);
	if (!found)
		init(memory);
	LWLockRelease(AddinShmemInitLock);
	return memory;
#endif
}

/*
 * From 19 on a tranche of locks gets its name when it is made, before 19 in each
 * process that uses the tranche.
 */
#if PG_VERSION_NUM >= 190000
#define compat_new_tranche(name) LWLockNewTrancheId(name)
#define compat_name_tranche(id, name) ((void) (id))
#else
#define compat_new_tranche(name) LWLockNewTrancheId()
#define compat_name_tranche(id, name) LWLockRegisterTranche(id, name)
#endif

/* Signal handlers have a second argument from 19 on, so SIG_IGN is not one. */
#if PG_VERSION_NUM < 190000
#define PG_SIG_IGN				SIG_IGN
#endif

/* Extensions name their wait events from 17 on. */
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 170000
#define compat_wait_event(name) WaitEventExtensionNew(name)
#else
#define compat_wait_event(name) PG_WAIT_EXTENSION
#endif

/*
 * Whether there are synchronous standbys is a boolean up to 15.12, 16.8 and 17.4, of
 * February 2025, and flags from the next releases on.  The server may be older than
 * the headers.
 */
#include "replication/walsender_private.h"
#ifndef SYNC_STANDBY_DEFINED
#error "scru64 is built with the headers of PostgreSQL 15.13, 16.9, 17.5 or later"
#endif
static inline bool
compat_sync_standbys_are_flags(int server_version)
{
	return server_version >= 180000 ||
		(server_version % 10000 >= (server_version >= 170000 ? 5 :
									server_version >= 160000 ? 9 : 13));
}

/* The number of a process, and the number that the process gives its transaction */
#include "storage/proc.h"
#define compat_proc_number(proc) ((proc) - ProcGlobal->allProcs)
#if PG_VERSION_NUM >= 170000
#define compat_lxid(proc) ((proc)->vxid.lxid)
#else
#define compat_lxid(proc) ((proc)->lxid)
#endif

/* May a role execute a function? */
#include "utils/acl.h"
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_proc_d.h"
#define compat_may_execute(function, role) \
	(object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK)
#else
#define compat_may_execute(function, role) \
	(pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK)
#endif

/* Functions that do not return: spelled so from 18 on. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn		pg_attribute_noreturn()
#endif

/* 18 shows a module's name and version in pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define COMPAT_MODULE_MAGIC(module_name, module_version) \
	PG_MODULE_MAGIC_EXT(.name = module_name, .version = module_version)
#else
#define COMPAT_MODULE_MAGIC(module_name, module_version) PG_MODULE_MAGIC
#endif

#endif							/* PG_COMPAT_H */
