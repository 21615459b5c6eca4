/*-------------------------------------------------------------------------
 *
 * ceiling_page.h
 *		The page on disk with the ceiling, the last tick whose IDs this server may issue: lock
 *		it, read it, write it.
 *
 * For ceiling.c, except ceiling_page_look(), which needs no lock.  A damaged page raises an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CEILING_PAGE_H
#define CEILING_PAGE_H

#include "access/xlogdefs.h"

extern bool ceiling_page_lock(bool wait);
extern void ceiling_page_unlock(void);
extern void ceiling_page_log_slow(int64 locked_at_ms);
extern bool ceiling_page_exists(void);
extern bool ceiling_page_read(uint64 *ceiling);
extern bool ceiling_page_look(uint64 *ceiling, bool to_use);
extern XLogRecPtr ceiling_page_write(uint64 ceiling);
pg_noreturn extern void ceiling_page_damaged(const char *reason);

#endif							/* CEILING_PAGE_H */
