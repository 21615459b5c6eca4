/*-------------------------------------------------------------------------
 *
 * watermark_rules.h
 *		What the watermark is, as far as numbers tell.
 *
 * Knows nothing of PostgreSQL.  Two kinds of rules:
 *
 *	- How far the nodes have come goes in.  Which of them to fast-forward, and the ID below
 *	  which none of them issues any more, comes out: there all is closed.
 *
 *	- Which of two snapshots sees more, and the watermarks of the snapshots before.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATERMARK_RULES_H
#define WATERMARK_RULES_H

#include "pure/scru64.h"

/*
 * What a server's watermark depends on, besides its nodes:
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
 * The tick after which a node starts if it is fast-forwarded: the last one that is over.
 * An idle node leaves out the current tick, too.  Otherwise the IDs of other nodes in this
 * tick would not be below the watermark before it is over.  When the idle node issues its
 * next ID, this is a tick ahead of the clock, if that is within the allowance.
 *
 *	used		tick of its last ID
 *	allowance	how far an ID may be ahead of the clock, in ticks
 */
static inline uint64_t
watermark_past(const WatermarkView *view, uint64_t used, uint64_t allowance)
{
	bool		is_idle = used + WATERMARK_IDLE_TICKS < view->tick && allowance > 0;

	return is_idle ? view->tick : view->tick - 1;
}

/*
 * Does a node hold back the watermark without need?  Its next ID may be the one after
 * last.  It does if that is below an ID of another node, and in the past, which ends with
 * end_of_past for this node: then watermark.c fast-forwards the node to that.  A server's
 * only node never has to be.
 */
static inline bool
watermark_is_held_back(const WatermarkView *view, uint64_t last, uint64_t end_of_past)
{
	return last < view->top && last < end_of_past;
}

/*
 * The ID below which no node issues any more, if the nodes in use issue none below first,
 * and all others start above the tick of the ID before the result.  Never above the first
 * ID that may be issued after a restart.
 */
extern uint64_t watermark_closed_below(const WatermarkView *view, uint64_t first);

/*
 * A server takes its snapshots in one order: the later one sees all that the earlier one
 * does.  It has a greater xmax, or the same and fewer transactions in progress.
 */
typedef struct SnapshotPlace
{
	uint64_t	xmax;			/* the first transaction that had not begun; 0: before
								 * all snapshots */
	uint64_t	running;		/* transactions before xmax that were in progress */
} SnapshotPlace;

static inline bool
snapshot_sees_all_of(SnapshotPlace snapshot, SnapshotPlace other)
{
	return snapshot.xmax > other.xmax ||
		(snapshot.xmax == other.xmax && snapshot.running <= other.running);
}

static inline bool
snapshots_are_same(SnapshotPlace a, SnapshotPlace b)
{
	return a.xmax == b.xmax && a.running == b.running;
}

/*
 * A 32-bit transaction ID as the 64 bits that it is short for; next is one that comes
 * after it, by less than 2^32.
 */
static inline uint64_t
widen_xid(uint32_t xid, uint64_t next)
{
	return next - (uint32_t) ((uint32_t) next - xid);
}

/*
 * The watermarks that were found last, one for each snapshot: calls alone, without a
 * commit between them, do not push out older ones.  An answer holds for its snapshot, and
 * for all later ones.
 */
#define ANSWERS		16

typedef struct Answer
{
	SnapshotPlace place;
	uint64_t	watermark;
} Answer;

typedef struct AnswerRing
{
	Answer		answers[ANSWERS];	/* all 0: none */
	uint32_t	newest;
} AnswerRing;

extern void answers_put(AnswerRing *ring, SnapshotPlace place, uint64_t watermark);

/* The greatest watermark that holds for a snapshot, or 0, below which there is no ID. */
extern uint64_t answers_best(const AnswerRing *ring, SnapshotPlace place);

#endif							/* WATERMARK_RULES_H */
