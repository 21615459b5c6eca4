/*-------------------------------------------------------------------------
 *
 * standbys.h
 *		How far the synchronous standbys have flushed the WAL, and whether a commit of this
 *		session would wait for them.
 *
 * Nothing here waits: ceiling.c does.  generate_errors.c asks which standbys are missing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STANDBYS_H
#define STANDBYS_H

#include "access/xlogdefs.h"

extern bool standbys_are_defined(void);
extern bool standbys_are_waited_for(void);
extern XLogRecPtr standbys_reached(void);
extern int	standbys_missing(void);
extern void standbys_log_wait(int64 since_ms);

#endif							/* STANDBYS_H */
