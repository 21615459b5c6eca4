/*-------------------------------------------------------------------------
 *
 * kept_lease.c
 *		A lease that outlives its worker, under the same postmaster.
 *
 * After the crash of a process the postmaster starts all others anew, and the lease
 * may go on.  Under any other postmaster it may not: a data directory may be a copy.
 * So it is kept in a shared memory object of the machine, never in the data
 * directory, with what tells this postmaster from every other.  Where that is not
 * certain, nothing is kept, and a new lease is taken: on all but Linux, whose kernel
 * tells one boot from the next.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "utils/timestamp.h"

#include "lease_worker/kept_lease.h"
#include "shmem/lease.h"

#define BOOT_ID_FILE		"/proc/sys/kernel/random/boot_id"

static bool
read_identity(Identity *identity)
{
	struct stat pipe;
	FILE	   *file = fopen(BOOT_ID_FILE, "r");
	bool		known;

	memset(identity, 0, sizeof(*identity));
	if (file == NULL)
		return false;
	known = fread(identity->boot_id, 1, UUID_TEXT_LEN, file) == UUID_TEXT_LEN;
	fclose(file);
	identity->postmaster = PostmasterPid;
	identity->started = PgStartTime;
	if (fstat(postmaster_alive_fds[POSTMASTER_FD_WATCH], &pipe) != 0)
		return false;
	identity->pipe = pipe.st_ino;
	return known;
}

/*
 * Keep a lease for a worker of the same postmaster; one without a lease_id says
 * that there is none.
 */
void
keep_lease(HeldLease *held)
{
	char		name[LEASE_OBJECT_NAMELEN];
	int			fd;

	scru64_lease_object_name(name);
	(void) shm_unlink(name);
	if (held->lease_id[0] == '\0' || !read_identity(&held->identity))
		return;
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return;
	/* not everywhere does writing make it larger */
	if (ftruncate(fd, sizeof(*held)) != 0 ||
		write(fd, held, sizeof(*held)) != (ssize_t) sizeof(*held))
		(void) shm_unlink(name);
	close(fd);
}

/* The lease that was kept under this postmaster, if there is one. */
bool
recall_lease(HeldLease *held)
{
	char		name[LEASE_OBJECT_NAMELEN];
	Identity	identity;
	struct stat object;
	bool		complete;
	int			fd;

	scru64_lease_object_name(name);
	fd = shm_open(name, O_RDONLY, 0);
	if (fd < 0)
		return false;
	complete = fstat(fd, &object) == 0 && object.st_uid == geteuid() &&
		read(fd, held, sizeof(*held)) == (ssize_t) sizeof(*held);
	close(fd);
	return complete && read_identity(&identity) &&
		memcmp(&identity, &held->identity, sizeof(identity)) == 0;
}
