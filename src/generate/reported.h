/*-------------------------------------------------------------------------
 *
 * reported.h
 *		The watermarks that were reported in the open transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REPORTED_H
#define REPORTED_H

#include "utils/snapshot.h"

#include "pure/watermark_rules.h"

extern SnapshotPlace place_of(Snapshot snapshot);
extern uint64 reported_watermark(Snapshot snapshot, uint64 (*find) (SnapshotPlace place));

#endif							/* REPORTED_H */
