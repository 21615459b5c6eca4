/*-------------------------------------------------------------------------
 *
 * standbys.h
 *		How far the synchronous standbys are, and whether to wait for them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STANDBYS_H
#define STANDBYS_H

#include "access/xlogdefs.h"

extern bool standbys_are_waited_for(void);
extern XLogRecPtr standbys_reached(void);
extern void standbys_log_wait(int64 since_ms);

#endif							/* STANDBYS_H */
