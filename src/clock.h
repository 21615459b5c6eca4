/*-------------------------------------------------------------------------
 *
 * clock.h
 *		The clocks: read them, wait for one.
 *
 * "The clock" has the time of day, and may be set.  The monotonic clock cannot be set,
 * and is the same for all processes of the server.  Do not use instr_time for it: from
 * PostgreSQL 19 on instr_time may be a counter of the processor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

#include "pg_compat.h"

#include "pure/scru64.h"

/*
 * A tick is 256 ms, so the cheap clock will do.  The cheap clock lags behind the precise one by a
 * few milliseconds, and by more while a virtual machine waits for a processor.
 */
#ifdef CLOCK_REALTIME_COARSE
#define GENERATOR_CLOCK		CLOCK_REALTIME_COARSE
#else
#define GENERATOR_CLOCK		CLOCK_REALTIME
#endif

#define MSECS_PER_SEC		1000
#define NSECS_PER_MSEC		1000000

/* Unix time in milliseconds; negative before 1970. */
static inline int64
clock_ms(void)
{
	struct timespec now;

	clock_gettime(GENERATOR_CLOCK, &now);
	return (int64) now.tv_sec * MSECS_PER_SEC + now.tv_nsec / NSECS_PER_MSEC;
}

/* Milliseconds since some time in the past, by the monotonic clock. */
static inline int64
monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * MSECS_PER_SEC + now.tv_nsec / NSECS_PER_MSEC;
}

pg_noreturn extern void clock_out_of_range(void);

/* The clock in ticks; raises an error before 1970, which has no ticks. */
static inline uint64
clock_tick(void)
{
	int64		now_ms = clock_ms();

	if (unlikely(now_ms < 0))
		clock_out_of_range();
	return (uint64) now_ms >> SCRU64_TICK_SHIFT;
}

extern void clock_wait(uint64 due);

#endif							/* CLOCK_H */
