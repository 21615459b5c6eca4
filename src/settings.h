/*-------------------------------------------------------------------------
 *
 * settings.h
 *		The settings, scru64.*, for the files that act on them.
 *
 * settings.c defines and checks them.  scru64.node_spec is a session's; all others are the
 * server's, and a session that has a value of its own for one of them gets an error from
 * settings_check_server().  settings_own_node_spec_source() says from where the session has its
 * node, and settings_refused_node_spec_source() from where it has a value that was no node spec,
 * or that its role may not set.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "utils/guc.h"

#include "pure/node_spec.h"

#define NODE_SPEC_SETTING	"scru64.node_spec"
#define ALLOWANCE_SETTING	"scru64.rollback_allowance"
#define REALM_SETTING		"scru64.realm"

#define MAX_ROLLBACK_ALLOWANCE	(24 * 60 * 60 * 1000)	/* milliseconds */

/* Characters of a holder, which the realm's ledger limits, too */
#define MAX_HOLDER_LEN		200

/* scru64.node_spec; its node_id_size is 0 if it is empty. */
extern NodeSpec configured_node;

/* The others.  The allowance is in milliseconds, lease_ttl in seconds. */
extern PGDLLEXPORT int scru64_rollback_allowance;
extern PGDLLEXPORT char *scru64_realm;
extern PGDLLEXPORT char *scru64_realm_id;
extern PGDLLEXPORT int scru64_lease_node_id_size;
extern PGDLLEXPORT int scru64_lease_node_id_size_min;
extern PGDLLEXPORT int scru64_lease_ttl;
extern PGDLLEXPORT char *scru64_lease_within;
extern PGDLLEXPORT char *scru64_lease_holder;

/* scru64.rollback_allowance in ticks, rounded down. */
static inline uint64
allowance_ticks(void)
{
	return (uint64) scru64_rollback_allowance >> SCRU64_TICK_SHIFT;
}

extern void settings_define(void (*on_node_change) (void));
extern void settings_check_server(void);
extern GucSource settings_own_node_spec_source(void);
extern GucSource settings_refused_node_spec_source(void);
extern const char *settings_bad_environment_spec(void);

#endif							/* SETTINGS_H */
