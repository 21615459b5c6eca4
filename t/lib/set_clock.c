/*-------------------------------------------------------------------------
 *
 * set_clock.c
 *		A clock that a test sets, to be preloaded into a server.
 *
 * The file SET_CLOCK holds a number of 8 bytes: twice the microseconds to add to the machine's
 * clock; or, plus 1, twice the microseconds since 1970 at which the clock stands still.  The
 * test changes the number in place, and all processes read the number from shared memory.
 *
 * PostgreSQL also asks for the time in signal handlers, so nothing here allocates or locks:
 * libfaketime allocates, and where the signal comes during malloc(), the server crashes.
 *
 * If the environment has SET_CLOCK_MONOTONIC, the monotonic clock reads the same time.
 *
 * While the clock stands still, a signal handler that interrupts a wait sees the machine's
 * time, so that timeouts end if the clock stands behind the machine's.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define US_PER_S	1000000

static const volatile int64_t *setting = NULL;
static int	is_monotonic_set = 0;
static volatile int is_waiting = 0;

static void __attribute__((constructor))
map_setting(void)
{
	const char *file = getenv("SET_CLOCK");
	int			fd;
	void	   *map;

	if (file == NULL)
		return;
	fd = open(file, O_RDONLY);
	map = mmap(NULL, sizeof(*setting), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	setting = map;
	is_monotonic_set = getenv("SET_CLOCK_MONOTONIC") != NULL;
}

static int
read_set_clock(struct timespec *at)
{
	int64_t		number;
	int64_t		us;
	int64_t		rest;

	/* a machine may need two reads for 8 bytes, and two writes */
	do
		number = *setting;
	while (number != *setting);
	us = number >> 1;
	if (syscall(SYS_clock_gettime, CLOCK_REALTIME, at) != 0)
		return -1;
	if (number % 2 == 0)
		us += (int64_t) at->tv_sec * US_PER_S + at->tv_nsec / 1000;
	else if (is_waiting)
		return 0;
	rest = (us % US_PER_S + US_PER_S) % US_PER_S;
	at->tv_sec = (us - rest) / US_PER_S;
	at->tv_nsec = rest * 1000;
	return 0;
}

int
clock_gettime(clockid_t clock, struct timespec *at)
{
	int			is_set = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
		(is_monotonic_set && clock == CLOCK_MONOTONIC);

	return setting != NULL && is_set ? read_set_clock(at) : (int) syscall(SYS_clock_gettime, clock, at);
}

int
gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	struct timespec now;

	(void) zone;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *at)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	if (at != NULL)
		*at = now.tv_sec;
	return now.tv_sec;
}

int
epoll_wait(int set, struct epoll_event *events, int count, int timeout)
{
	int			result;

	is_waiting = 1;
	result = (int) syscall(SYS_epoll_pwait, set, events, count, timeout, NULL, 0);
	is_waiting = 0;
	return result;
}
