/*-------------------------------------------------------------------------
 *
 * settings.c
 *		The settings: their definitions and checks.
 *
 * All but scru64.node_spec are settings of the server, for all its sessions.  The default of
 * scru64.node_spec is the environment variable SCRU64_NODE_SPEC of the server.
 *
 * Invariants:
 *
 *	- configured_node has the value in force of scru64.node_spec.  The callback of
 *	  settings_define() is called after each change.
 *	- A value that its check refuses never comes into force.  scru64.realm, a connection
 *	  string, has no check: libpq judges it.
 *	- A session that had its own value of a setting of the server before the library was
 *	  loaded generates no ID: see settings_check_server().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include <limits.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "settings.h"
#include "type/node_spec_text.h"

#define GUC_PREFIX			"scru64"
#define NODE_SPEC_VARIABLE	"SCRU64_NODE_SPEC"

#define DEFAULT_ROLLBACK_ALLOWANCE	10000	/* milliseconds */

#define DEFAULT_LEASE_NODE_ID_SIZE	12
#define DEFAULT_LEASE_NODE_ID_SIZE_MIN	8
#define DEFAULT_LEASE_TTL	(60 * 60)	/* seconds */
#define MIN_LEASE_TTL		10

NodeSpec	configured_node;

static char *node_spec = NULL;	/* the same as text */
static void (*node_changed) (void);

int			scru64_rollback_allowance = 0;
char	   *scru64_realm = NULL;
char	   *scru64_realm_id = NULL;
int			scru64_lease_node_id_size = 0;
int			scru64_lease_node_id_size_min = 0;
int			scru64_lease_ttl = 0;
char	   *scru64_lease_within = NULL;
char	   *scru64_lease_holder = NULL;

static bool
check_node_spec(char **newval, void **extra pg_attribute_unused(),
				GucSource source pg_attribute_unused())
{
	NodeSpec	spec;
	NodeSpecStatus status = node_spec_parse(*newval, &spec);

	if (**newval == '\0' || status == NODE_SPEC_OK)
		return true;
	GUC_check_errdetail("%s", node_spec_text_details[status]);
	GUC_check_errhint(NODE_SPEC_EXAMPLES);
	return false;
}

static bool
check_realm_id(char **newval, void **extra pg_attribute_unused(),
			   GucSource source pg_attribute_unused())
{
	if (**newval == '\0' ||
		(strlen(*newval) == 36 &&
		 strspn(*newval, "0123456789abcdefABCDEF-") == 36))
		return true;
	GUC_check_errdetail("It is a uuid, as %s returns it.", "scru64_realm.realm_id()");
	return false;
}

/*
 * The realm has this text in an encoding of its own, and so has each database that shows the text
 * in scru64_lease(): ASCII is the same in all of them.
 */
static bool
check_holder(char **newval, void **extra pg_attribute_unused(),
			 GucSource source pg_attribute_unused())
{
	size_t		len = 0;

	while ((*newval)[len] >= ' ' && (*newval)[len] <= '~')
		len++;
	if ((*newval)[len] == '\0' && len <= MAX_HOLDER_LEN)
		return true;
	GUC_check_errdetail("It is a text of at most %d printable ASCII characters.", MAX_HOLDER_LEN);
	return false;
}

static void
assign_node_spec(const char *newval, void *extra pg_attribute_unused())
{
	configured_node = (NodeSpec) {0};
	/* an empty value is no node spec */
	(void) node_spec_parse(newval, &configured_node);
	node_changed();
}

/*
 * The default node spec
 */

/* The value of the environment variable if it is set to no valid node spec, else NULL. */
const char *
settings_bad_environment_spec(void)
{
	const char *text = getenv(NODE_SPEC_VARIABLE);
	NodeSpec	spec;

	return text != NULL && *text != '\0' &&
		node_spec_parse(text, &spec) != NODE_SPEC_OK ? text : NULL;
}

/*
 * The default of scru64.node_spec: the server's environment variable, as in the
 * specification's reference libraries.
 *
 * Empty if the setting has a value already.  If the user has no right to set this value,
 * PostgreSQL is about to refuse it, and the configured value is gone.  Then the session
 * gets no node: the node of the environment variable may be a different one.
 */
static char *
default_node_spec(void)
{
	const char *text = getenv(NODE_SPEC_VARIABLE);

	if (settings_bad_environment_spec() != NULL)
	{
		/*
		 * Warn once for the server: where processes are not forked, each one preloads the
		 * library anew.  Without preloading, error 55000 says the same.
		 */
		if (process_shared_preload_libraries_in_progress && !IsUnderPostmaster)
			ereport(WARNING,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("environment variable %s is ignored: invalid node spec \"%s\"",
							NODE_SPEC_VARIABLE, text),
					 errhint(NODE_SPEC_EXAMPLES)));
		return "";
	}
	if (text == NULL ||
		(!process_shared_preload_libraries_in_progress &&
		 GetConfigOption(NODE_SPEC_SETTING, true, false) != NULL))
		return "";
	/* the environment may be overwritten, the default must stay */
	return MemoryContextStrdup(TopMemoryContext, text);
}

/*
 * Settings of the server, the same for all its sessions
 */

/* Beyond this are a session's own values: not of the server's defaults, files or command line */
#define LAST_SERVER_SOURCE	PGC_S_ARGV

/* The source of the session's own node spec; PGC_S_DEFAULT if it has none. */
GucSource
settings_own_node_spec_source(void)
{
	GucSource	source = compat_find_setting(NODE_SPEC_SETTING)->source;

	return source > LAST_SERVER_SOURCE ? source : PGC_S_DEFAULT;
}

/* A setting of the server that had a value of the session's own, and the value's source */
static const char *own_setting = NULL;
static GucSource own_source;

/* See settings_refused_node_spec_source(). */
static GucSource refused_source = PGC_S_DEFAULT;

/*
 * The source of the session's own value of a setting that the library is about to define;
 * PGC_S_DEFAULT if the session has none.
 *
 * If PostgreSQL refuses the value, it does so at the definition, with a WARNING.  After a
 * plain SET the server's value takes effect.  After start-up options, ALTER ROLE or ALTER
 * DATABASE the server's value is gone, and the compiled-in default takes effect; likewise
 * in a parallel worker whose leader has not loaded the library.
 */
static GucSource
own_source_of_placeholder(const char *name)
{
	struct config_generic *placeholder = compat_find_setting(name);
	GucSource	source;

	if (placeholder == NULL)
		return PGC_S_DEFAULT;
	source = IsParallelWorker() ? placeholder->source : placeholder->reset_source;
	return source > LAST_SERVER_SOURCE ? source : PGC_S_DEFAULT;
}

/* The source of the session's own node spec that was refused; PGC_S_DEFAULT if none was. */
GucSource
settings_refused_node_spec_source(void)
{
	return refused_source;
}

/* Raise 55P02 in a session that had its own value of a setting of the server. */
void
settings_check_server(void)
{
	if (own_setting != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CANT_CHANGE_RUNTIME_PARAM),
				 errmsg("parameter \"%s\" cannot be set for a session", own_setting),
				 errdetail("It is the same for all sessions of the server, but this one had a value from source \"%s\".",
						   GucSource_Names[own_source]),
				 errhint("Set it in postgresql.conf or by ALTER SYSTEM. Take it out of the client's start-up options, or RESET it by ALTER ROLE or ALTER DATABASE in a session that has not used scru64, and connect again.")));
}

/*
 * Note a session's own value of a setting that is about to be defined.  Returns the
 * setting's name.
 */
static const char *
server_setting(const char *name)
{
	GucSource	source = own_source_of_placeholder(name);

	if (source != PGC_S_DEFAULT)
	{
		own_setting = name;
		own_source = source;
	}
	return name;
}

static void
define_server_settings(void)
{
	DefineCustomIntVariable(server_setting(ALLOWANCE_SETTING),
							"How far the last ID may be ahead of the clock.",
							"IDs go on in order while the clock is behind them by up to this time. Up to twice this time scru64_generate() waits, beyond that it fails.",
							&scru64_rollback_allowance,
							DEFAULT_ROLLBACK_ALLOWANCE, 0, MAX_ROLLBACK_ALLOWANCE,
							PGC_SIGHUP, GUC_ALLOW_IN_PARALLEL | GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable(server_setting(GUC_PREFIX ".lease_node_id_size"),
							"Bits of the node_id to lease.", NULL,
							&scru64_lease_node_id_size, DEFAULT_LEASE_NODE_ID_SIZE,
							SCRU64_MIN_NODE_ID_SIZE, SCRU64_MAX_NODE_ID_SIZE,
							PGC_SIGHUP, GUC_ALLOW_IN_PARALLEL, NULL, NULL, NULL);
	DefineCustomIntVariable(server_setting(GUC_PREFIX ".lease_node_id_size_min"),
							"Bits of the node_id down to which a busy server goes.", NULL,
							&scru64_lease_node_id_size_min, DEFAULT_LEASE_NODE_ID_SIZE_MIN,
							SCRU64_MIN_NODE_ID_SIZE, SCRU64_MAX_NODE_ID_SIZE,
							PGC_SIGHUP, GUC_ALLOW_IN_PARALLEL, NULL, NULL, NULL);
	DefineCustomIntVariable(server_setting(GUC_PREFIX ".lease_ttl"),
							"For how long a lease is renewed.", NULL,
							&scru64_lease_ttl, DEFAULT_LEASE_TTL, MIN_LEASE_TTL, INT_MAX,
							PGC_SIGHUP, GUC_ALLOW_IN_PARALLEL | GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomStringVariable(server_setting(REALM_SETTING),
							   "Connection string of the realm that this server leases its node from.",
							   NULL, &scru64_realm, "", PGC_SIGHUP,
							   GUC_ALLOW_IN_PARALLEL | GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomStringVariable(server_setting(GUC_PREFIX ".realm_id"),
							   "Identity of that realm; empty: whichever is met first.",
							   NULL, &scru64_realm_id, "", PGC_SIGHUP,
							   GUC_ALLOW_IN_PARALLEL, check_realm_id, NULL, NULL);
	DefineCustomStringVariable(server_setting(GUC_PREFIX ".lease_within"),
							   "Node spec of the block of nodes to lease from; empty: all.",
							   NULL, &scru64_lease_within, "", PGC_SIGHUP,
							   GUC_ALLOW_IN_PARALLEL, check_node_spec, NULL, NULL);
	DefineCustomStringVariable(server_setting(GUC_PREFIX ".lease_holder"),
							   "What the realm calls this server; empty: cluster_name, or host and port.",
							   NULL, &scru64_lease_holder, "", PGC_SIGHUP,
							   GUC_ALLOW_IN_PARALLEL, check_holder, NULL, NULL);
}

/* Define all settings.  Each change of scru64.node_spec calls on_node_change. */
void
settings_define(void (*on_node_change) (void))
{
	GucSource	source = own_source_of_placeholder(NODE_SPEC_SETTING);

	node_changed = on_node_change;
	define_server_settings();
	DefineCustomStringVariable(NODE_SPEC_SETTING,
							   "Node that scru64_generate() generates IDs for.",
							   "node_id/node_id_size, for example 42/8, 0xb00/12, or 0u2r85hm2pt3/16 to continue after an ID.",
							   &node_spec, default_node_spec(),
							   PGC_SUSET, GUC_ALLOW_IN_PARALLEL,
							   check_node_spec, assign_node_spec, NULL);
	if (settings_own_node_spec_source() == PGC_S_DEFAULT)
		refused_source = source;
	MarkGUCPrefixReserved(GUC_PREFIX);
}
