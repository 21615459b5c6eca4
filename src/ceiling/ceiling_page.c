/*-------------------------------------------------------------------------
 *
 * ceiling_page.c
 *		The page with the server's ceiling: lock it, read it, write it.
 *
 * One page of our own in the shared tablespace, through the buffer manager and in the WAL as a
 * full page.  No catalog lists it, and a server without this library replays it.  ceiling.c
 * says what the ceiling means, and when it is raised.  Raises errors.
 *
 * Invariants:
 *
 *	- When ceiling_page_write() returns, the page is in the WAL and flushed.
 *	- A page that is not exactly as it was written raises an error, and is never taken for a
 *	  ceiling; so does a ceiling after the last tick of IDs, which is never written.  The
 *	  contents have their own CRC: data checksums may be off, or may have been switched on
 *	  without this page, which no catalog lists.
 *	- One session of the server at a time has the lock, whatever its version of this library.
 *	- A page written by a later version raises an error, too: this version would lose the
 *	  fields behind its own.  The ceiling can be looked at all the same.
 *
 * The lock is the one for extending a relation: an error releases it, a wait for it can be
 * cancelled, and it also excludes the other processes of a parallel query.  Its holder must
 * take no other heavyweight lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "pg_compat.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_tablespace_d.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lock.h"
#include "storage/smgr.h"

#include "ceiling/ceiling_page.h"
#include "clock.h"
#include "pure/scru64.h"
#include "shmem/slots.h"

/*
 * Below every OID that a server assigns, and in no catalog of a released PostgreSQL.  From 8000
 * to 9999 are the OIDs that PostgreSQL reserves for patches in development: a patched server, or
 * a fork, may have a catalog with this number, and provide_page() raises an error then.  The
 * number stays, because every server with IDs has the file.
 */
#define CEILING_FILE		9864
#define CEILING_PATH		"global/" CppAsString2(CEILING_FILE)

/* Milliseconds after which a raise gets a line in the log */
#define SLOW_RAISE_MS		1000

#define CEILING_MAGIC		0x5c646e63
#define CEILING_VERSION		1

/*
 * The contents of the page, behind its header.  Every version begins with these fields, and a
 * later version adds its own behind them.
 */
typedef struct CeilingPage
{
	uint32		magic;
	uint32		version;
	uint64		ceiling;		/* in ticks */
	pg_crc32c	crc;			/* CRC-32C of the fields before it */
} CeilingPage;

#define CEILING_PAGE_LEN	(offsetof(CeilingPage, crc) + sizeof(pg_crc32c))

static const RelFileLocator ceiling_locator =
{
	GLOBALTABLESPACE_OID, InvalidOid, CEILING_FILE
};

static const LOCKTAG ceiling_lock =
{
	.locktag_field1 = InvalidOid,
	.locktag_field2 = CEILING_FILE,
	.locktag_type = LOCKTAG_RELATION_EXTEND,
	.locktag_lockmethodid = DEFAULT_LOCKMETHOD
};

/* Lock the page.  Without wait, false if another session has locked it. */
bool
ceiling_page_lock(bool wait)
{
	return LockAcquire(&ceiling_lock, ExclusiveLock, false, !wait) !=
		LOCKACQUIRE_NOT_AVAIL;
}

void
ceiling_page_unlock(void)
{
	LockRelease(&ceiling_lock, ExclusiveLock, false);
}

/*
 * The log, once a minute at most: a session has raised the ceiling, and has had the lock for
 * long, since a time by monotonic_ms().  Call this when the lock is released.
 */
void
ceiling_page_log_slow(int64 locked_at_ms)
{
	int64		took_ms = monotonic_ms() - locked_at_ms;

	if (took_ms < SLOW_RAISE_MS || !slots_log_is_due(LOG_SLOW_RAISE, 0))
		return;
	ereport(LOG,
			(errmsg("raising the ceiling of scru64 took %lld ms", (long long) took_ms),
			 errdetail("The ceiling has to be flushed to the WAL before the server issues later IDs."),
			 errhint("Check the disk of the WAL: sessions wait if a raise takes more than 2.5 seconds.")));
}

/* Raise XX001: no ID is generated. */
void
ceiling_page_damaged(const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("file \"%s\" is damaged", CEILING_PATH),
			 errdetail("%s", reason),
			 errhint("No ID is generated, because it might have been issued before. Promote a standby if it has all rows. Otherwise, as a superuser, call %s with a time that is not before the last ID. If you do not know that time, first set \"%s\" to a node that has not been used.",
					 "scru64_set_ceiling()", "scru64.node_spec")));
}

/* The file as it is now: this process may know an older size. */
static SMgrRelation
open_file(void)
{
	SMgrRelation file = smgropen(ceiling_locator, INVALID_PROC_NUMBER);

	smgrrelease(file);
	return file;
}

/* Is there a page?  Raises an error if there are several. */
static bool
has_page(SMgrRelation file)
{
	BlockNumber blocks = smgrexists(file, MAIN_FORKNUM) ?
		smgrnblocks(file, MAIN_FORKNUM) : 0;

	if (blocks > 1)
		ceiling_page_damaged("It has more than one page: move it away while the server is stopped.");
	return blocks == 1;
}

/* Raise an error if the file ends within a page, which smgrnblocks() does not see. */
static void
check_size(void)
{
	struct stat status;

	if (stat(CEILING_PATH, &status) == 0 && status.st_size % BLCKSZ != 0)
		ceiling_page_damaged("It does not end with a page.");
}

static pg_crc32c
contents_crc(const CeilingPage *contents)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, contents, offsetof(CeilingPage, crc));
	FIN_CRC32C(crc);
	return crc;
}

/* Raise 55000, and generate no ID: the fields of a later version may forbid it. */
static void
check_version(uint32 version)
{
	if (version > CEILING_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("file \"%s\" was written by a later version of scru64", CEILING_PATH),
				 errdetail("It is of format %u, and the library of this session knows none after %d.",
						   version, CEILING_VERSION),
				 errhint("Connect again, or restart the server if \"%s\" has scru64. If the later version is not to come back, then call %s as a superuser.",
						 "shared_preload_libraries", "scru64_set_ceiling(scru64_ceiling())")));
}

static bool
is_zero(const char *page)
{
	return page[0] == 0 && memcmp(page, page + 1, BLCKSZ - 1) == 0;
}

/*
 * Copy the page.  False if there is none: the file is missing or empty, or the page is zero.
 *
 * The buffer manager takes the page for damaged if its data checksum is wrong.  The page may
 * never have got a checksum, so look at the block itself then.
 */
static bool
copy_page(char *copy)
{
	SMgrRelation file = open_file();
	Buffer		buffer;

	check_size();
	if (!has_page(file))
		return false;

	buffer = ReadBufferWithoutRelcache(ceiling_locator, MAIN_FORKNUM, 0,
									   RBM_ZERO_ON_ERROR, NULL, true);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	if (PageIsNew((Page) copy))
		smgrread(file, MAIN_FORKNUM, 0, copy);
	return !is_zero(copy);
}

/* Is there a page, ours or not?  The caller has locked the page. */
bool
ceiling_page_exists(void)
{
	PGIOAlignedBlock copy;

	return copy_page(copy.data);
}

/* The contents of the page, of this version or a later one.  False if there is none. */
static bool
read_contents(CeilingPage *contents)
{
	PGIOAlignedBlock copy;

	if (!copy_page(copy.data))
		return false;
	memcpy(contents, PageGetContents((Page) copy.data), CEILING_PAGE_LEN);
	if (contents->magic != CEILING_MAGIC ||
		contents->version == 0 ||
		contents->ceiling > SCRU64_LAST_TIMESTAMP ||
		!EQ_CRC32C(contents->crc, contents_crc(contents)))
		ceiling_page_damaged("Its page is not one that scru64 has written.");
	return true;
}

/* Read the ceiling to issue IDs; the caller has locked the page.  False if there is none. */
bool
ceiling_page_read(uint64 *ceiling)
{
	CeilingPage contents;

	if (!read_contents(&contents))
		return false;
	check_version(contents.version);
	*ceiling = contents.ceiling;
	return true;
}

/* Read the ceiling without a lock.  With to_use, raise an error for a later version. */
bool
ceiling_page_look(uint64 *ceiling, bool to_use)
{
	CeilingPage contents;
	bool		found;

	(void) ceiling_page_lock(true);
	found = read_contents(&contents);
	ceiling_page_unlock();
	if (found && to_use)
		check_version(contents.version);
	if (found)
		*ceiling = contents.ceiling;
	return found;
}

/* Make sure that the file is ours and has its page.  A crash here leaves it empty or zero. */
static void
provide_page(void)
{
	SMgrRelation file = open_file();
	PGIOAlignedBlock zero;

	if (OidIsValid(RelidByRelfilenumber(GLOBALTABLESPACE_OID, CEILING_FILE)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("file \"%s\" belongs to a relation", CEILING_PATH),
				 errdetail("The ceiling of scru64 needs it."),
				 errhint("Have that relation rewritten, for example by VACUUM FULL.")));
	if (has_page(file))
		return;
	/* as in recovery: a crash may have left the file without its page */
	smgrcreate(file, MAIN_FORKNUM, true);
	memset(zero.data, 0, BLCKSZ);
	smgrextend(file, MAIN_FORKNUM, 0, zero.data, false);
}

static void
fill_page(Page page, uint64 ceiling)
{
	CeilingPage contents = {
		.magic = CEILING_MAGIC,
		.version = CEILING_VERSION,
		.ceiling = ceiling
	};

	contents.crc = contents_crc(&contents);
	PageInit(page, BLCKSZ, 0);
	memcpy(PageGetContents(page), &contents, CEILING_PAGE_LEN);
	/* behind the contents is a hole, which the WAL leaves out */
	((PageHeader) page)->pd_lower = PageGetContents(page) - page + CEILING_PAGE_LEN;
}

/*
 * Write the page anew, whatever it was, and flush it; the caller has locked it.  Returns the
 * end of its record in the WAL.  Not to be called during recovery.
 */
XLogRecPtr
ceiling_page_write(uint64 ceiling)
{
	Buffer		buffer;
	XLogRecPtr	lsn;

	Assert(ceiling <= SCRU64_LAST_TIMESTAMP);
	provide_page();
	/* this does not read the page, so a damaged one does not matter */
	buffer = ReadBufferWithoutRelcache(ceiling_locator, MAIN_FORKNUM, 0,
									   RBM_ZERO_AND_LOCK, NULL, true);

	START_CRIT_SECTION();
	fill_page(BufferGetPage(buffer), ceiling);
	MarkBufferDirty(buffer);
	lsn = log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);

	XLogFlush(lsn);
	return lsn;
}
