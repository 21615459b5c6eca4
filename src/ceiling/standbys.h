/*-------------------------------------------------------------------------
 *
 * standbys.h
 *		What the synchronous standbys have, and who waits for them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STANDBYS_H
#define STANDBYS_H

#include "access/xlogdefs.h"

extern bool standbys_are_waited_for(void);
extern XLogRecPtr standbys_reached(void);

#endif							/* STANDBYS_H */
