/*-------------------------------------------------------------------------
 *
 * ceiling.h
 *		The ceiling: how far the IDs of this server may go.
 *
 * Upper storey.  See ceiling.c for why that is enough, and ceiling_page.c for the
 * page that holds it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CEILING_H
#define CEILING_H

#include "node_slots.h"

extern void ceiling_load(uint64 now, uint64 allowance);
extern bool ceiling_raise(NodeSlot *slot, NodeKey key, uint64 state,
						  uint64 target, bool wait);
extern uint64 ceiling_hold(void);
extern void ceiling_let_go(void);
extern void ceiling_set(uint64 ceiling);

/* For ceiling.c */
extern bool ceiling_page_lock(bool wait);
extern void ceiling_page_unlock(void);
extern bool ceiling_page_exists(void);
extern bool ceiling_page_read(uint64 *ceiling);
extern void ceiling_page_write(uint64 ceiling);
extern void ceiling_page_wait(void);
pg_noreturn extern void ceiling_page_damaged(const char *reason);

#endif							/* CEILING_H */
