/*-------------------------------------------------------------------------
 *
 * watermark_rules.h
 *		How far scru64_watermark() may go, and which earlier watermark holds for a snapshot.
 *
 * Knows nothing of PostgreSQL.  The watermark is an ID below which a reader misses no row.  Two
 * kinds of rules:
 *
 *	- Input: how far each node has got.  Output: the ID below which no node issues any more,
 *	  and which idle nodes must first be made to start above it (be fast-forwarded).
 *
 *	- Input: a statement's snapshot, and the watermarks given before, each with its snapshot.
 *	  Output: the greatest of them that holds for the statement, because its snapshot sees no
 *	  more than the statement's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATERMARK_RULES_H
#define WATERMARK_RULES_H

#include "pure/scru64.h"

/*
 * A server's watermark depends on this, besides its nodes:
 *
 *	top			the greatest ID that any node may have issued
 *	tick		the clock, but at most the first tick above the ceiling
 *	ceiling		nodes start above this tick when the server is restarted
 */
typedef struct WatermarkView
{
	uint64_t	top;
	uint64_t	tick;
	uint64_t	ceiling;
} WatermarkView;

static inline WatermarkView
watermark_view(uint64_t top, uint64_t now, uint64_t ceiling)
{
	WatermarkView view = {
		.top = top,
		.tick = greatest_of(least_of(now, ceiling + 1), 1),
		.ceiling = ceiling
	};

	return view;
}

/* A node whose last ID is older than this is idle: about a second. */
#define WATERMARK_IDLE_TICKS	4

/*
 * The tick after which a fast-forwarded node starts: the last tick that is over.  An idle
 * node starts after the current tick.  Otherwise the IDs of other nodes in the current tick
 * would not be below the watermark before the tick is over.  An ID that the idle node then
 * issues at once is one tick ahead of the clock, so the allowance must not be 0.
 *
 *	used		tick of the node's last ID
 *	allowance	how far an ID may be ahead of the clock, in ticks
 */
static inline uint64_t
watermark_past(const WatermarkView *view, uint64_t used, uint64_t allowance)
{
	bool		is_idle = used + WATERMARK_IDLE_TICKS < view->tick && allowance > 0;

	return is_idle ? view->tick : view->tick - 1;
}

/*
 * Does a node hold back the watermark without need?  Its next ID may be the one after last.
 * The node does if an ID of another node is above last, and last is before end_of_past, to
 * which watermark.c then fast-forwards the node.  The node of the greatest ID never does.
 */
static inline bool
watermark_is_held_back(const WatermarkView *view, uint64_t last, uint64_t end_of_past)
{
	return last < view->top && last < end_of_past;
}

/*
 * The ID below which no node issues any more, if the nodes with a slot issue none below
 * first, and all others start above the closed tick: the tick of the ID before the result.
 * Never above the first ID that may be issued after a restart.
 */
extern uint64_t watermark_closed_below(const WatermarkView *view, uint64_t first);

/*
 * A server takes its snapshots in one order: a later one sees all transactions that an
 * earlier one sees.  It has a greater xmax, or the same with fewer transactions in progress.
 */
typedef struct SnapshotPosition
{
	uint64_t	xmax;			/* the first transaction that had not begun; 0: before
								 * all snapshots */
	uint64_t	running;		/* the number of transactions before xmax in progress */
} SnapshotPosition;

static inline bool
snapshot_sees_all_of(SnapshotPosition snapshot, SnapshotPosition other)
{
	return snapshot.xmax > other.xmax ||
		(snapshot.xmax == other.xmax && snapshot.running <= other.running);
}

static inline bool
snapshots_are_same(SnapshotPosition a, SnapshotPosition b)
{
	return a.xmax == b.xmax && a.running == b.running;
}

/*
 * The 64 bits of a transaction ID of which xid has the lower 32.  next is the same
 * transaction ID, or a later one by less than 2^32.
 */
static inline uint64_t
widen_xid(uint32_t xid, uint64_t next)
{
	return next - (uint32_t) ((uint32_t) next - xid);
}

/*
 * The watermarks found last, one for each position of a snapshot: calls without a commit
 * between them push out no older answer.  An answer holds for its snapshot, and for all
 * later ones.
 */
#define ANSWERS		16

typedef struct Answer
{
	SnapshotPosition position;
	uint64_t	watermark;
} Answer;

typedef struct AnswerRing
{
	Answer		answers[ANSWERS];	/* all 0: none */
	uint32_t	newest;
} AnswerRing;

/* Remember a watermark for a snapshot; of several for one position, the greatest. */
extern void watermark_remember(AnswerRing *ring, SnapshotPosition position, uint64_t watermark);

/* The greatest of these that holds for a snapshot; if none does, 0, the lowest ID. */
extern uint64_t watermark_best(const AnswerRing *ring, SnapshotPosition position);

#endif							/* WATERMARK_RULES_H */
