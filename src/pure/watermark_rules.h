/*-------------------------------------------------------------------------
 *
 * watermark_rules.h
 *		What the watermark is, as far as numbers tell.
 *
 * Knows nothing of PostgreSQL.  Pure: how far the nodes have come goes in; which of them
 * are to leave the past, and below which ID none of them gives out anything any more,
 * comes out.  And: which of two snapshots sees more, and what the watermark was for the
 * snapshots before.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATERMARK_RULES_H
#define WATERMARK_RULES_H

#include "pure/scru64.h"

/* Unlike Min(), which looks twice at what others change. */
static inline uint64_t
least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * What a server's watermark depends on, besides its nodes:
 *
 *	top			the greatest ID that any node may have given out
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
	uint64_t	tick = now < ceiling + 1 ? now : ceiling + 1;
	WatermarkView view = {
		.top = top,
		.tick = tick > 0 ? tick : 1,
		.ceiling = ceiling
	};

	return view;
}

/* A node whose last ID is older than this is idle: about a second. */
#define WATERMARK_IDLE_TICKS	4

/*
 * The tick after which a node is to start if it holds back the watermark: the last one
 * that is over.  One that is idle leaves out the current one, too, or else the IDs of it
 * that others make would not be below the watermark before the tick is over.  If it is
 * used again, it begins a tick ahead of the clock, if that is within the allowance.
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
 * Does a node hold back the watermark without need?  As far as is known, its next ID may
 * be the one after last: below IDs of other nodes, and of a tick that is past.  Then it
 * is to start after the past, in which its last ID would be end_of_past.  A server's only
 * node never has to.
 */
static inline bool
watermark_is_held_back(const WatermarkView *view, uint64_t last, uint64_t end_of_past)
{
	return last < view->top && last < end_of_past;
}

/*
 * The ID below which no node gives out anything any more.  That is so if the nodes that
 * are there give out nothing below first, and all others start above the tick of the ID
 * before it.  Never above the first ID that may be given out after a restart.
 */
extern uint64_t watermark_settle(const WatermarkView *view, uint64_t first);

/*
 * Snapshots.  A server takes its snapshots in one order: the later one sees all that
 * the earlier one does.  Later is a greater xmax, or the same and fewer that run.
 */
typedef struct SnapshotPlace
{
	uint64_t	xmax;			/* first transaction that it knows nothing of; 0: the
								 * place before all */
	uint64_t	running;		/* transactions before xmax that it does not see */
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
 * How many different ones there are.  Sorts them.  A transaction that is just being
 * prepared is listed twice.
 */
extern uint32_t count_distinct(uint32_t *xids, uint32_t count);

/*
 * The watermarks that were found last, each with a snapshot that it holds for: one for
 * each snapshot, so that calls alone do not push out those before.
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

/* The greatest that holds for a snapshot; 0, below which there is nothing, if none does. */
extern uint64_t answers_best(const AnswerRing *ring, SnapshotPlace place);

#endif							/* WATERMARK_RULES_H */
