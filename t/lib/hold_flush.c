/*-------------------------------------------------------------------------
 *
 * hold_flush.c
 *		A disk that answers late, for tests: to be preloaded into a server.
 *
 * Every flush of the WAL takes as long as there is a file, HOLD_FLUSH, or, if there is
 * a number in it, so many milliseconds longer.  The process that wants it writes its
 * pid into another one, HOLD_FLUSH.log, before.  No flush goes to a disk, because no
 * test depends on that.
 *
 * Flushes of the WAL writer are not held: the WAL writer would keep the lock that a session
 * takes to flush.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAP_MS		10

extern int	fdatasync(int fd);
extern int	fsync(int fd);

static int
is_wal(int fd)
{
	char		link[64];
	char		path[4096];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	return strstr(path, "/pg_wal/") != NULL;
}

/* PostgreSQL writes the title of a process over its command line. */
static int
is_wal_writer(void)
{
	char		title[256] = "";
	FILE	   *stream = fopen("/proc/self/cmdline", "r");

	if (stream == NULL)
		return 0;
	(void) !fread(title, 1, sizeof(title) - 1, stream);
	fclose(stream);
	return strstr(title, "walwriter") != NULL;
}

/* How much longer a flush takes, LONG_MAX: as long as there is the file. */
static long
delay_ms(const char *file)
{
	FILE	   *stream = fopen(file, "r");
	long		delay = LONG_MAX;

	if (stream == NULL)
		return 0;
	(void) !fscanf(stream, "%ld", &delay);
	fclose(stream);
	return delay;
}

static void
hold(int fd)
{
	const char *file = getenv("HOLD_FLUSH");
	char		log[4096];
	int			log_fd;
	long		waited_ms = 0;

	if (file == NULL || !is_wal(fd) || is_wal_writer())
		return;
	snprintf(log, sizeof(log), "%s.log", file);
	log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (log_fd >= 0)
	{
		dprintf(log_fd, "%d\n", (int) getpid());
		close(log_fd);
	}
	while (waited_ms < delay_ms(file))
	{
		usleep(NAP_MS * 1000);
		waited_ms += NAP_MS;
	}
}

int
fdatasync(int fd)
{
	hold(fd);
	return 0;
}

int
fsync(int fd)
{
	hold(fd);
	return 0;
}
