/*-------------------------------------------------------------------------
 *
 * ceiling.h
 *		The ceiling: the last tick whose IDs this server may issue.
 *
 * Sessions and the lease worker load, raise and wait for the ceiling here.  ceiling.c says why no
 * ID is issued twice, ceiling_page.c where the ceiling is kept on disk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CEILING_H
#define CEILING_H

#include "shmem/shared_parts.h"

/* What keeps the usable ceiling below a tick, and for how long */
typedef enum CeilingWait
{
	CEILING_WAIT_NONE,			/* nothing, or what is over in a moment */
	CEILING_WAIT_FLUSH,			/* a flush of the WAL */
	CEILING_WAIT_STANDBYS		/* synchronous standbys */
} CeilingWait;

extern const SharedPart ceiling_part;

extern void ceiling_load(void);
extern uint64 ceiling_durable(void);
extern uint64 ceiling_usable(void);
extern uint32 ceiling_incarnation(void);
extern void ceiling_raise(uint32 incarnation, uint64 enough, uint64 target, bool wait);
extern void ceiling_wait_for_standbys(uint32 incarnation, uint64 tick);
extern CeilingWait ceiling_look_for_wait(uint64 tick, int64 *waited_ms);
extern void ceiling_set(uint64 ceiling);

/* For the lease worker */
extern PGDLLEXPORT bool scru64_ceiling_load_if_written(void);
extern PGDLLEXPORT uint64 scru64_ceiling_lock(void);

#endif							/* CEILING_H */
