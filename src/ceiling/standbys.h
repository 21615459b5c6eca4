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

#endif							/* STANDBYS_H */
