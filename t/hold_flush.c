/*-------------------------------------------------------------------------
 *
 * hold_flush.c
 *		A disk that answers late, for tests: to be preloaded into a server.
 *
 * Every flush of the WAL takes as long as there is a file, HOLD_FLUSH, and the
 * process that wants it writes its pid into another one, HOLD_FLUSH.log, before.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAP_USECS	10000

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

static void
hold(int fd)
{
	const char *file = getenv("HOLD_FLUSH");
	char		log[4096];
	int			log_fd;

	if (file == NULL || !is_wal(fd))
		return;
	snprintf(log, sizeof(log), "%s.log", file);
	log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (log_fd >= 0)
	{
		dprintf(log_fd, "%d\n", (int) getpid());
		close(log_fd);
	}
	while (access(file, F_OK) == 0)
		usleep(NAP_USECS);
}

static int
flush(const char *name, int fd)
{
	int			(*real) (int) = (int (*) (int)) dlsym(RTLD_NEXT, name);

	hold(fd);
	return real(fd);
}

int
fdatasync(int fd)
{
	return flush("fdatasync", fd);
}

int
fsync(int fd)
{
	return flush("fsync", fd);
}
