/*-------------------------------------------------------------------------
 *
 * reported.h
 *		The watermarks reported in the open transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REPORTED_H
#define REPORTED_H

#include "utils/snapshot.h"

#include "pure/watermark_rules.h"

extern SnapshotPosition snapshot_position(Snapshot snapshot);
extern uint64 reported_watermark(Snapshot snapshot, uint64 (*find) (SnapshotPosition position));

#endif							/* REPORTED_H */
