/*-------------------------------------------------------------------------
 *
 * generate.h
 *		The settings of the generator, for module.c to define.
 *
 * Upper storey.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GENERATE_H
#define GENERATE_H

#include "utils/guc.h"

extern char *scru64_node_spec;
extern int	scru64_rollback_allowance;	/* milliseconds */

extern bool check_scru64_node_spec(char **newval, void **extra,
								   GucSource source);
extern void assign_scru64_node_spec(const char *newval, void *extra);

#endif							/* GENERATE_H */
