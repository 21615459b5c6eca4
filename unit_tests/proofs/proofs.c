/*
 * proofs.c
 *		What the pure files promise for every input, as CBMC proves it.
 *
 * A parameter of a proof has any value, and so has a variable without one; given() says which
 * count.  CBMC proves, too, that no access is outside its memory, and no arithmetic undefined.
 */
#include "pure/base36.h"
#include "pure/generator.h"
#include "pure/look_ahead.h"
#include "pure/node_spec.h"
#include "pure/watermark_rules.h"
#include "realm/worker/lease_plan.h"

#define PROOF(name, ...)	void prove_##name(__VA_ARGS__)
#define given(condition)	__CPROVER_assume(condition)
#define prove(condition)	__CPROVER_assert(condition, #condition)
#define UNTOUCHED			UINT64_MAX

static bool
is_of(Scru64Node node, uint64_t id)
{
	return id <= SCRU64_MAX_ID && (id & 0xffffff) >> (24 - node.node_id_size) == node.node_id;
}

static bool
is_node(Scru64Node node)
{
	return node.node_id_size >= 1 && node.node_id_size <= 23 && is_of(node, node.node_id << (24 - node.node_id_size));
}

/* What generator_next() takes as the last ID: in tick 0 only the last one */
static bool
is_last(Scru64Node node, uint64_t last)
{
	return is_of(node, last) && (last > 0xffffff || ((last + 1) << node.node_id_size & 0xffffff) == 0);
}

PROOF(next, Scru64Node node, uint64_t last, uint64_t now, uint32_t allowance, uint32_t random)
{
	Generator	generator;
	uint64_t	next = UNTOUCHED;
	uint64_t	incremented = UNTOUCHED;
	GeneratorVerdict verdict;

	given(is_node(node));
	generator = generator_make(node);
	prove(generator_increment(&generator, last, now, allowance, &incremented) == (incremented != UNTOUCHED));
	prove(incremented == UNTOUCHED || (is_of(node, last) && incremented == last + 1));
	given(is_last(node, last));
	verdict = generator_next(&generator, last, now, allowance, random, &next);
	prove((verdict == GENERATOR_NEXT || verdict == GENERATOR_NEXT_BY_OVERFLOW) == (next != UNTOUCHED));
	prove((incremented == UNTOUCHED) == (next != last + 1));
	prove(verdict == GENERATOR_EXHAUSTED || (now >= generator_due(&generator, last, allowance)) == (next != UNTOUCHED));
	if (next == UNTOUCHED)
		return;
	prove(next > last && next >= generator_first_after(&generator, last));
	prove(is_of(node, next) && next <= generator_last_of_tick(&generator, next >> 24));
	prove(next >> 24 > 0 && next >> 24 <= SCRU64_LAST_TIMESTAMP && next >> 24 >= now && (next >> 24) - now <= allowance);
}

PROOF(look_ahead, LookAhead request)
{
	uint64_t	target = UNTOUCHED;
	LookAheadVerdict verdict;

	given(request.tick <= SCRU64_LAST_TIMESTAMP && request.now <= SCRU64_MAX_TIMESTAMP && request.allowance <= UINT32_MAX);
	verdict = look_ahead(&request, &target);
	prove((verdict == LOOK_AHEAD_PAST_LIMIT) == (request.tick > request.limit));
	prove((verdict == LOOK_AHEAD_ENTER_AND_RAISE || verdict == LOOK_AHEAD_RAISE_FIRST) == (target != UNTOUCHED));
	prove((verdict == LOOK_AHEAD_ENTER || verdict == LOOK_AHEAD_ENTER_AND_RAISE) <= (request.tick <= request.usable));
	prove((verdict == LOOK_AHEAD_WAIT) <= (request.tick <= request.durable && request.tick > request.usable));
	if (target == UNTOUCHED)
		return;
	prove(target >= request.tick && target > request.durable && target <= least_of(request.limit, SCRU64_LAST_TIMESTAMP));
	prove(target == request.tick || target < request.now + greatest_of(request.allowance, 1));
	prove(target <= greatest_of(request.tick + LOOK_AHEAD_TICKS, request.now + LOOK_AHEAD_OVERFLOW_TICKS));
}

PROOF(decode, size_t len)
{
	char		text[BASE36_DIGITS];
	uint64_t	id = UNTOUCHED;
	bool		is_id = len == BASE36_DIGITS;

	for (int i = 0; i < BASE36_DIGITS; i++)
		is_id = is_id && ((text[i] >= '0' && text[i] <= '9') || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z'));
	prove(base36_decode(text, len, &id) == is_id);
	prove(is_id ? id <= SCRU64_MAX_ID : id == UNTOUCHED);
}

/* Every text of up to 16 bytes; its NUL is the last byte of the memory. */
PROOF(parse, size_t start)
{
	char		memory[17];
	NodeSpec	spec = {.node_prev = UNTOUCHED};
	bool		parsed;

	for (size_t i = 0; i < sizeof(memory); i++)
		given((memory[i] == '\0') == (i == sizeof(memory) - 1));
	given(start < sizeof(memory));
	parsed = node_spec_parse(memory + start, &spec) == NODE_SPEC_OK;
	prove(parsed == (spec.node_prev != UNTOUCHED) && (!parsed || is_node(spec.node)));
	prove(!parsed || spec.node_prev == 0 || (spec.node_prev > 0xffffff && is_of(spec.node, spec.node_prev)));
}

PROOF(overlap, Scru64Node a, Scru64Node b, uint32_t node_ctr)
{
	given(is_node(a) && is_node(b));
	if (nodes_overlap(a, b))
		node_ctr = scru64_node_base(a) | scru64_node_base(b);
	prove((is_of(a, node_ctr) && is_of(b, node_ctr)) == nodes_overlap(a, b));
}

/* A node after a call of scru64_watermark(), or after a crash, or one that gets its slot later */
PROOF(watermark, Scru64Node node, uint64_t last, uint64_t used, uint64_t now, uint32_t allowance, uint64_t top,
	  uint64_t ceiling, uint64_t others, uint64_t start, uint64_t later, uint32_t random)
{
	WatermarkView view = watermark_view(top, now, ceiling);
	Generator	generator;
	uint64_t	end_of_past;
	uint64_t	watermark;
	uint64_t	next = UNTOUCHED;

	given(is_node(node) && is_last(node, last) && used <= scru64_get_timestamp(last));
	given(top <= SCRU64_MAX_ID && ceiling <= SCRU64_LAST_TIMESTAMP && others > 0 && start <= SCRU64_MAX_TIMESTAMP);
	generator = generator_make(node);
	end_of_past = generator_last_of_tick(&generator, watermark_past(&view, used, allowance));
	if (watermark_is_held_back(&view, last, end_of_past))
		last = end_of_past;
	prove(last != end_of_past || generator_due(&generator, last, allowance) <= greatest_of(now, 1));
	watermark = watermark_closed_below(&view, least_of(others, generator_first_after(&generator, last)));
	prove(watermark > top || others <= top || (top >> 24) >= now || (top >> 24) > ceiling);
	if (start == ceiling || start >= scru64_get_timestamp(watermark - 1))
		last = generator_last_of_tick(&generator, start);
	(void) generator_next(&generator, last, later, allowance, random, &next);
	prove(next >= watermark);
}

PROOF(snapshots, SnapshotPosition a, SnapshotPosition b, SnapshotPosition c, uint32_t ago)
{
	prove((snapshot_sees_all_of(a, b) && snapshot_sees_all_of(b, a)) == snapshots_are_same(a, b));
	prove(snapshot_sees_all_of(a, b) || snapshot_sees_all_of(b, a));
	prove(!snapshot_sees_all_of(a, b) || !snapshot_sees_all_of(b, c) || snapshot_sees_all_of(a, c));
	prove(ago > a.xmax || widen_xid((uint32_t) (a.xmax - ago), a.xmax) == a.xmax - ago);
}

/* The numbers are only compared: 32 of them do for all.  The ring is the same from each place. */
PROOF(answers, AnswerRing ring, Answer put, Answer asked)
{
	Answer		kept = ring.answers[ANSWERS - 1];
	uint64_t	best;

	ring.newest = ANSWERS - 1;
	for (int i = -2; i < ANSWERS; i++)
	{
		Answer		answer = i == -2 ? asked : i == -1 ? put : ring.answers[i];

		given(answer.position.xmax < 32 && answer.position.running < 32 && answer.watermark < 32);
		given(answer.watermark <= asked.watermark || !snapshot_sees_all_of(asked.position, answer.position));
	}
	watermark_remember(&ring, put.position, put.watermark);
	best = watermark_best(&ring, asked.position);
	prove(best <= asked.watermark && (best >= put.watermark || !snapshot_sees_all_of(asked.position, put.position)));
	prove(best >= kept.watermark || !snapshot_sees_all_of(asked.position, kept.position));
}

/* The lease worker oversleeps nothing but the return of a lease, which was put off. */
PROOF(sleep, Plan plan, uint64_t saturated, uint64_t used, int64_t later_ms)
{
	const NodeSize *size = &plan.size;
	Plan		later;

	given(plan.now_ms >= 0 && plan.now_ms <= INT64_MAX / 2 && plan.allowance_ms >= 0 && plan.last_called_ms >= 0);
	given(size->current >= 1 && size->current <= 23 && size->looked_at_ms >= 0 && size->looked_at_ms <= plan.now_ms);
	given(size->waiting_looks >= 0 && size->waiting_looks < INT32_MAX && (plan.has_lease || !plan.has_slot));
	if (plan.has_slot)
		node_size_look(&plan.size, plan.now_ms, saturated, used);
	later = plan;
	later.now_ms = later_ms;
	prove(plan_next_step(&plan) != STEP_SLEEP || plan_sleep_until_ms(&plan) > plan.now_ms);
	prove(plan_next_step(&plan) != STEP_SLEEP || later_ms < plan.now_ms || later_ms >= plan_sleep_until_ms(&plan) ||
		  (plan.next_lease_ms > plan.now_ms && plan.next_lease_ms <= later_ms) ||
		  plan_next_step(&later) == STEP_SLEEP);
	(void) plan_call(&plan);
	prove(!plan_call(&plan));
}
