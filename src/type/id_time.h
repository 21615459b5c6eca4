/*-------------------------------------------------------------------------
 *
 * id_time.h
 *		Ticks as timestamptz, and back.
 *
 * Ticks of 256 ms are counted from 1970-01-01 00:00:00+00, the microseconds of a
 * timestamptz from 2000-01-01 00:00:00+00.  No time zone is involved.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ID_TIME_H
#define ID_TIME_H

#include "datatype/timestamp.h"

#include "pure/scru64.h"

#define TICK_USECS			((int64) SCRU64_TICK_MS * 1000)

/* 1970-01-01 00:00:00+00 as a timestamptz, and the start of the last tick */
#define UNIX_EPOCH_TIMESTAMP \
	((TimestampTz) (UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY)
#define LAST_TICK_TIMESTAMP \
	(UNIX_EPOCH_TIMESTAMP + (int64) SCRU64_MAX_TIMESTAMP * TICK_USECS)

/* The start of a tick, 0 .. SCRU64_MAX_TIMESTAMP. */
static inline TimestampTz
time_of_tick(uint64 tick)
{
	return UNIX_EPOCH_TIMESTAMP + (int64) tick * TICK_USECS;
}

/* The tick that holds a time from 1970-01-01 on. */
static inline uint64
tick_of_time(TimestampTz time)
{
	return (uint64) ((time - UNIX_EPOCH_TIMESTAMP) / TICK_USECS);
}

/* The same for any time; 22008 if the time has no tick, infinity included. */
extern uint64 id_time_checked_tick(TimestampTz time);

#endif							/* ID_TIME_H */
