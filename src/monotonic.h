/*-------------------------------------------------------------------------
 *
 * monotonic.h
 *		A clock that nobody sets, the same for all processes of the server.
 *
 * Upper storey.  instr_time is no such clock: from PostgreSQL 19 on it is the
 * operating system's or a counter of the processor, which began elsewhere, and
 * a setting says which, also of a single session.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONOTONIC_H
#define MONOTONIC_H

#include <time.h>

/* Milliseconds since some time in the past. */
static inline int64
monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif							/* MONOTONIC_H */
