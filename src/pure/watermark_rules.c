/*-------------------------------------------------------------------------
 *
 * watermark_rules.c
 *		How far scru64_watermark() may go, and which earlier watermark holds for a snapshot.
 *
 * Knows nothing of PostgreSQL.  The rules are in watermark_rules.h.
 *
 *-------------------------------------------------------------------------
 */
#include "pure/watermark_rules.h"

uint64_t
watermark_closed_below(const WatermarkView *view, uint64_t first)
{
	uint64_t	above_all = greatest_of(view->top + 1, scru64_compose(view->tick, 0));

	return least_of(least_of(first, above_all), scru64_compose(view->ceiling + 1, 0));
}

void
watermark_remember(AnswerRing *ring, SnapshotPosition position, uint64_t watermark)
{
	Answer	   *newest = &ring->answers[ring->newest];

	if (!snapshots_are_same(newest->position, position))
	{
		ring->newest = (ring->newest + 1) % ANSWERS;
		newest = &ring->answers[ring->newest];
		*newest = (Answer) {.position = position};
	}
	if (watermark > newest->watermark)
		newest->watermark = watermark;
}

uint64_t
watermark_best(const AnswerRing *ring, SnapshotPosition position)
{
	uint64_t	best = 0;

	for (int i = 0; i < ANSWERS; i++)
	{
		const Answer *answer = &ring->answers[i];

		if (answer->watermark > best && snapshot_sees_all_of(position, answer->position))
			best = answer->watermark;
	}
	return best;
}
