/*-------------------------------------------------------------------------
 *
 * ceiling.h
 *		The ceiling: how far the IDs of this server may go.
 *
 * See ceiling.c for why that is enough, and ceiling_page.c for the page that holds
 * it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CEILING_H
#define CEILING_H

#include "shmem/slot.h"

extern void ceiling_load(uint64 now, uint64 allowance);
extern uint64 ceiling_durable(void);
extern uint64 ceiling_mark(void);
extern void ceiling_raise(NodeSlot *slot, NodeKey key, uint64 state, uint64 enough,
						  uint64 target, bool wait);
extern void ceiling_wait_for_standbys(NodeSlot *slot, NodeKey key, uint64 state,
									  uint64 tick);
extern void ceiling_set(uint64 ceiling);

/* For the lease worker */
extern PGDLLEXPORT uint64 scru64_ceiling_hold(void);
extern PGDLLEXPORT void scru64_ceiling_let_go(void);

#endif							/* CEILING_H */
