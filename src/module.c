/*-------------------------------------------------------------------------
 *
 * module.c
 *		What happens when the library is loaded: settings, memory request.
 *
 * Upper storey, at the top: nothing calls it but PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pg_compat.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "generate.h"
#include "node_spec.h"
#include "node_state.h"

#define GUC_PREFIX			"scru64"
#define NODE_SPEC_SETTING	GUC_PREFIX ".node_spec"
#define NODE_SPEC_VARIABLE	"SCRU64_NODE_SPEC"

#define DEFAULT_ROLLBACK_ALLOWANCE	10000	/* milliseconds */
#define MAX_ROLLBACK_ALLOWANCE		(24 * 60 * 60 * 1000)

COMPAT_MODULE_MAGIC("scru64", SCRU64_VERSION);

extern PGDLLEXPORT void _PG_init(void);

static shmem_request_hook_type prev_shmem_request_hook = NULL;

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(node_state_size());
}

/*
 * Was scru64.node_spec set before this library was loaded, so that it is known
 * as a name only and anybody may have done it?
 */
static bool
is_set_unchecked(void)
{
	return !process_shared_preload_libraries_in_progress &&
		GetConfigOption(NODE_SPEC_SETTING, true, false) != NULL;
}

/*
 * The default of scru64.node_spec: the server's environment variable, as the
 * specification's reference libraries take it.
 *
 * Not if the setting is there already.  If that is one that its user has no
 * right to, it is about to be refused, and hides what the configuration says: no
 * node is right then, while the variable's could be another one.
 */
static char *
default_node_spec(void)
{
	const char *text = getenv(NODE_SPEC_VARIABLE);
	NodeSpec	spec;

	if (text == NULL || *text == '\0' || is_set_unchecked())
		return "";
	if (node_spec_parse(text, &spec) != NODE_SPEC_OK)
	{
		/* a bad one must not keep the server from starting */
		ereport(WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("environment variable %s is ignored: invalid node spec \"%s\"",
						NODE_SPEC_VARIABLE, text),
				 errhint("Examples: 42/8, 0xb00/12, 0u2r85hm2pt3/16.")));
		return "";
	}
	/* the environment may be rewritten, the default must stay */
	return MemoryContextStrdup(TopMemoryContext, text);
}

void
_PG_init(void)
{
	DefineCustomStringVariable(NODE_SPEC_SETTING,
							   "Node that scru64_generate() generates IDs for.",
							   "node_id/node_id_size, for example 42/8, 0xb00/12, or 0u2r85hm2pt3/16 to continue after an ID.",
							   &scru64_node_spec,
							   default_node_spec(),
							   PGC_SUSET,
							   0,
							   check_scru64_node_spec,
							   assign_scru64_node_spec,
							   NULL);

	DefineCustomIntVariable("scru64.rollback_allowance",
							"How far the last ID may be ahead of the clock.",
							"IDs go on in order while the clock is behind them by up to this time. Up to twice this time scru64_generate() waits, beyond that it fails.",
							&scru64_rollback_allowance,
							DEFAULT_ROLLBACK_ALLOWANCE,
							0,
							MAX_ROLLBACK_ALLOWANCE,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);

	MarkGUCPrefixReserved(GUC_PREFIX);

	if (COMPAT_PRELOAD_RESERVES_MEMORY &&
		process_shared_preload_libraries_in_progress)
	{
		prev_shmem_request_hook = shmem_request_hook;
		shmem_request_hook = request_shared_memory;
	}
}
