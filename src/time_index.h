/*-------------------------------------------------------------------------
 *
 * time_index.h
 *		Index paths for conditions on scru64_timestamp(id).
 *
 * Upper storey.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIME_INDEX_H
#define TIME_INDEX_H

/* Called once, when the library is loaded. */
extern void time_index_init(void);

#endif							/* TIME_INDEX_H */
