/*-------------------------------------------------------------------------
 *
 * watermark_rules.c
 *		What the watermark is, as far as numbers tell.
 *
 * Knows nothing of PostgreSQL.  The rules are in watermark_rules.h.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "pure/watermark_rules.h"

static uint64_t
first_of_tick(uint64_t tick)
{
	return scru64_compose(tick, 0);
}

uint64_t
watermark_closed_below(const WatermarkView *view, uint64_t first)
{
	uint64_t	above_all = greatest_of(view->top + 1, first_of_tick(view->tick));

	return least_of(least_of(first, above_all), first_of_tick(view->ceiling + 1));
}

static int
compare_xids(const void *a, const void *b)
{
	uint32_t	left = *(const uint32_t *) a;
	uint32_t	right = *(const uint32_t *) b;

	return (left > right) - (left < right);
}

uint32_t
count_distinct(uint32_t *xids, uint32_t count)
{
	uint32_t	distinct = 0;

	if (count > 0)
		qsort(xids, count, sizeof(*xids), compare_xids);
	for (uint32_t i = 0; i < count; i++)
	{
		if (i == 0 || xids[i] != xids[i - 1])
			distinct++;
	}
	return distinct;
}

void
answers_put(AnswerRing *ring, SnapshotPlace place, uint64_t watermark)
{
	Answer	   *newest = &ring->answers[ring->newest];

	if (!snapshots_are_same(newest->place, place))
	{
		ring->newest = (ring->newest + 1) % ANSWERS;
		newest = &ring->answers[ring->newest];
		*newest = (Answer) {.place = place};
	}
	if (watermark > newest->watermark)
		newest->watermark = watermark;
}

uint64_t
answers_best(const AnswerRing *ring, SnapshotPlace place)
{
	uint64_t	best = 0;

	for (int i = 0; i < ANSWERS; i++)
	{
		const Answer *answer = &ring->answers[i];

		if (answer->watermark > best && snapshot_sees_all_of(place, answer->place))
			best = answer->watermark;
	}
	return best;
}
