/*-------------------------------------------------------------------------
 *
 * settings.h
 *		The settings, and what a session keeps of its node.
 *
 * Upper storey.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "generator.h"
#include "node_slots.h"
#include "node_spec.h"

/* The node of this session. */
typedef struct SessionNode
{
	NodeSpec	spec;			/* as set; node_id_size is 0 if it is not */
	NodeKey		key;
	Generator	generator;
	NodeSlot   *slot;			/* NULL until found, and when a setting changes */
	int			allowance_ms;	/* the allowance that goes with the slot */
} SessionNode;

extern SessionNode session_node;

/* The session's allowance in ticks, rounded down. */
static inline uint64
allowance_ticks(void)
{
	return (uint64) session_node.allowance_ms >> SCRU64_TICK_SHIFT;
}

extern void define_settings(void);
extern int	agreed_allowance(void);
extern const char *bad_environment_spec(void);

#endif							/* SETTINGS_H */
