/*-------------------------------------------------------------------------
 *
 * generate.c
 *		scru64_generate(), and the function behind the view scru64_generators.
 *
 * Upper storey: brings together the session's node spec, the clock, the
 * transition (generator.c) and the shared state (node_state.c), and turns
 * their verdicts into waits and errors.
 *
 * Invariant: an ID is returned only after it was written to the shared state
 * of its node by a compare-and-swap from the state that it was computed from.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <time.h>

#include "fmgr.h"
#include "pg_compat.h"

#include "access/xlog.h"
#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base36.h"
#include "generate.h"
#include "generator.h"
#include "node_spec.h"
#include "node_state.h"
#include "scru64.h"
#include "tick_time.h"

/*
 * A tick is 256 ms, so the cheap clock will do.  It never differs from the
 * precise one by more than a few milliseconds.
 */
#ifdef CLOCK_REALTIME_COARSE
#define GENERATOR_CLOCK		CLOCK_REALTIME_COARSE
#else
#define GENERATOR_CLOCK		CLOCK_REALTIME
#endif

#define MSECS_PER_SEC		1000
#define NSECS_PER_MSEC		1000000
#define USECS_PER_MSEC		1000

/* Milliseconds between looks at the clock, which may be set, in a wait. */
#define MAX_NAP				1000

#define WAIT_EVENT_NAME		"Scru64Clock"

/*
 * How far a ceiling is put ahead of the clock, in ticks: one write in about four
 * seconds of activity.
 */
#define MAX_DURABLE_TICKS	16

/* Seconds between two messages of a kind in the log about one node. */
#define LOG_INTERVAL		60

/* Columns of scru64_generators(). */
enum
{
	COLUMN_NODE_ID,
	COLUMN_NODE_ID_SIZE,
	COLUMN_LAST_ID,
	COLUMN_NODE_SPEC,
	COLUMN_LEAD,
	COLUMN_DURABLE_UNTIL,
	COLUMN_COUNTER_OVERFLOWS,
	COLUMN_CLOCK_ROLLBACKS,
	COLUMN_WAITS,
	NUM_COLUMNS
};

PG_FUNCTION_INFO_V1(scru64_generate);
PG_FUNCTION_INFO_V1(scru64_generate_count);
PG_FUNCTION_INFO_V1(scru64_generators);

/* The settings, as text and number. */
char	   *scru64_node_spec = NULL;
int			scru64_rollback_allowance = 0;

/* scru64.node_spec as it is in force, and the node's slot once it is found. */
static struct
{
	NodeSpec	spec;			/* node_id_size is 0 if not set */
	NodeKey		key;
	Generator	generator;
	NodeSlot   *slot;
}			session;

/*
 * Settings
 */

bool
check_scru64_node_spec(char **newval, void **extra,
					   GucSource source pg_attribute_unused())
{
	NodeSpec	spec = {0};
	NodeSpecStatus status = NODE_SPEC_OK;

	if (**newval != '\0')
		status = node_spec_parse(*newval, &spec);

	switch (status)
	{
		case NODE_SPEC_OK:
			*extra = compat_guc_malloc(sizeof(spec));
			if (*extra == NULL)
				return false;
			memcpy(*extra, &spec, sizeof(spec));
			return true;
		case NODE_SPEC_BAD_SYNTAX:
			GUC_check_errdetail("A node spec is node_id/node_id_size, where node_id is decimal, hexadecimal after \"0x\", or a previous ID of 12 digits.");
			break;
		case NODE_SPEC_BAD_SIZE:
			GUC_check_errdetail("The node_id_size, after the slash, must be between %d and %d.",
								SCRU64_MIN_NODE_ID_SIZE,
								SCRU64_MAX_NODE_ID_SIZE);
			break;
		case NODE_SPEC_BAD_NODE_ID:
			GUC_check_errdetail("The node_id, before the slash, does not fit in as many bits as the node_id_size, after it, says.");
			break;
	}
	GUC_check_errcode(ERRCODE_INVALID_PARAMETER_VALUE);
	GUC_check_errhint("Examples: 42/8, 0xb00/12, 0u2r85hm2pt3/16.");
	return false;
}

void
assign_scru64_node_spec(const char *newval pg_attribute_unused(), void *extra)
{
	session.spec = *(NodeSpec *) extra;
	session.slot = NULL;
	if (session.spec.node.node_id_size == 0)
		return;
	session.key = node_key(session.spec.node);
	session.generator = generator_make(session.spec.node);
}

/* scru64.rollback_allowance in ticks, rounded down. */
static inline uint64
allowance_ticks(void)
{
	return (uint64) scru64_rollback_allowance >> SCRU64_TICK_SHIFT;
}

/*
 * Clock
 */

static void clock_before_epoch(void);

/* Unix time in milliseconds; negative before 1970. */
static inline int64
clock_ms(void)
{
	struct timespec now;

	clock_gettime(GENERATOR_CLOCK, &now);
	return (int64) now.tv_sec * MSECS_PER_SEC + now.tv_nsec / NSECS_PER_MSEC;
}

/* The clock in ticks; an error before 1970, where there are none. */
static inline uint64
clock_tick(void)
{
	int64		now_ms = clock_ms();

	if (unlikely(now_ms < 0))
		clock_before_epoch();
	return (uint64) now_ms >> SCRU64_TICK_SHIFT;
}

/*
 * Text for messages, palloc'd
 */

static char *
node_text(Scru64Node node)
{
	NodeSpec	spec = {.node = node};
	char	   *text = palloc(NODE_SPEC_BUFLEN);

	node_spec_format(&spec, text);
	return text;
}

static char *
id_text(uint64 id)
{
	char	   *text = palloc0(BASE36_DIGITS + 1);

	base36_encode(id, text);
	return text;
}

static char *
time_text(uint64 tick)
{
	return pstrdup(timestamptz_to_str(time_of_tick(tick)));
}

/* The clock as it is, also before 1970. */
static char *
clock_text(void)
{
	return pstrdup(timestamptz_to_str(GetCurrentTimestamp()));
}

/*
 * What happens to the clock, and what is said of it
 */

/*
 * Is it time to log something again?  By the monotonic clock: the other one is
 * what is logged about.
 */
static bool
log_is_due(pg_atomic_uint64 *logged)
{
	uint64		last = pg_atomic_read_u64(logged);
	instr_time	time;
	uint64		now;

	INSTR_TIME_SET_CURRENT(time);
	now = (uint64) INSTR_TIME_GET_DOUBLE(time);
	return (last == 0 || now - last >= LOG_INTERVAL) &&
		pg_atomic_compare_exchange_u64(logged, &last, Max(now, 1));
}

static void
log_rollback(NodeSlot *slot, uint64 seen, uint64 now)
{
	if (!log_is_due(&slot->rollback_logged))
		return;
	ereport(LOG,
			(errmsg("the clock went back from %s to %s",
					time_text(seen), time_text(now)),
			 errdetail("Node %s continues after its last ID as long as that is not ahead of the clock by more than \"%s\" (%d ms).",
					   node_text(session.spec.node),
					   "scru64.rollback_allowance", scru64_rollback_allowance)));
}

static void
log_wait(NodeSlot *slot, uint64 last)
{
	if (!log_is_due(&slot->wait_logged))
		return;
	ereport(LOG,
			(errmsg("node %s waits for the clock",
					node_text(session.spec.node)),
			 errdetail("The ID after %s would be ahead of the clock by more than \"%s\" (%d ms).",
					   id_text(last), "scru64.rollback_allowance",
					   scru64_rollback_allowance),
			 errhint("If the clock is right, the node is asked for more IDs than its counter has room for: give it a smaller node_id_size.")));
}

/*
 * Keep the clock as this node's sessions have last seen it, and notice when it
 * goes back.
 */
static void
observe_clock(NodeSlot *slot, uint64 now)
{
	uint64		seen = pg_atomic_read_u64(&slot->clock);

	if (now > seen)
		pg_atomic_compare_exchange_u64(&slot->clock, &seen, now);
	else if (now < seen)
	{
		/*
		 * Another session may have read the clock after this one did.  So read
		 * it again, after what was seen was read: now only a clock that went
		 * back can be behind it.
		 */
		pg_read_barrier();
		now = clock_tick();
		if (now < seen &&
			pg_atomic_compare_exchange_u64(&slot->clock, &seen, now))
		{
			pg_atomic_fetch_add_u64(&slot->clock_rollbacks, 1);
			log_rollback(slot, seen, now);
		}
	}
}

/* Sleep until the clock reaches a tick, or for a moment: then look again. */
static void
wait_for_clock(uint64 due)
{
	static uint32 wait_event = 0;
	int64		due_ms = (int64) (due << SCRU64_TICK_SHIFT);
	int64		now_ms = clock_ms();
	long		timeout = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event(WAIT_EVENT_NAME);

	if (due_ms > now_ms)
		timeout = (long) Min(due_ms - now_ms, MAX_NAP);
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timeout, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Errors
 */

static void
node_spec_not_set(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("node spec is not set"),
			 errdetail("The parameter \"%s\" is empty, so there is no node to generate IDs for.",
					   "scru64.node_spec"),
			 errhint("Give every server a node of its own, for example: ALTER SYSTEM SET scru64.node_spec = '42/8'; SELECT pg_reload_conf();")));
}

static void
node_overlaps(const NodeReport *obstacle)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("node %s overlaps node %s, which is in use on this server",
					node_text(session.spec.node), node_text(obstacle->node)),
			 errdetail("The last ID of node %s, %s, is of %s.",
					   node_text(obstacle->node), id_text(obstacle->reached),
					   time_text(scru64_get_timestamp(obstacle->reached))),
			 errhint("Choose node_ids of which none is a bit prefix of another, or wait until the other node has been idle for longer than \"%s\".",
					 "scru64.rollback_allowance")));
}

static void
clock_behind(uint64 last)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the clock is too far behind the last ID of node %s",
					node_text(session.spec.node)),
			 errdetail("The clock reads %s. The last ID, %s, is of %s; the next would be ahead by more than twice \"%s\" (%d ms).",
					   clock_text(), id_text(last),
					   time_text(scru64_get_timestamp(last)),
					   "scru64.rollback_allowance", scru64_rollback_allowance),
			 errhint("Correct the clock, wait until it has caught up, or set \"%s\" to a node that has not been used.",
					 "scru64.node_spec")));
}

static void
clock_before_epoch(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the clock is before the first timestamp of type %s", "scru64"),
			 errdetail("The clock reads %s. Timestamps start with the year 1970.",
					   clock_text()),
			 errhint("Correct the clock.")));
}

static void
timestamps_exhausted(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the clock is past the last timestamp of type %s", "scru64"),
			 errdetail("The clock reads %s. The last timestamp is of %s.",
					   clock_text(),
					   time_text(SCRU64_LAST_TIMESTAMP)),
			 errhint("Correct the clock.")));
}

/*
 * Generation
 */

/*
 * Find the slot of the session's node.
 *
 * A session that has a slot has passed the test for recovery, which never
 * comes back in the life of a session.
 */
static pg_noinline void
attach(void)
{
	uint64		now = clock_tick();
	NodeReport	obstacle;

	/* another session may take the slot away again and again */
	CHECK_FOR_INTERRUPTS();
	PreventCommandDuringRecovery("scru64_generate()");
	if (session.spec.node.node_id_size == 0)
		node_spec_not_set();

	switch (node_state_attach(&session.spec, now, allowance_ticks(),
							  &session.slot, &obstacle))
	{
		case NODE_ATTACHED:
			break;
		case NODE_OVERLAPS:
			node_overlaps(&obstacle);
			break;
		case NODE_PREV_AHEAD:
			clock_behind(session.spec.node_prev);
			break;
	}
}

/*
 * How far a ceiling is put ahead of where IDs can get to, in ticks.  A restart
 * starts above the ceiling: if the allowance is small, have less, so that the
 * clock is never hopelessly behind then.
 */
static uint64
durable_ticks(uint64 allowance)
{
	return allowance > 0 ? Min(MAX_DURABLE_TICKS, allowance - 1) : 0;
}

/*
 * May IDs of this tick be given out?  If not, see to it that they soon may, and
 * return false: the state may be another one by then.
 *
 * A node that overflows goes on to do so, up to the allowance: have its ceiling
 * beyond that, so that this is as rare under load.
 */
static bool
is_durable(uint64 timestamp, uint64 now, uint64 allowance, bool overflow)
{
	uint64		foreseen = now + durable_ticks(allowance) +
		(overflow ? allowance : 0);

	if (timestamp <= node_state_durable(session.slot))
		return true;
	node_state_make_durable(session.slot, session.key, timestamp, foreseen);
	return false;
}

/*
 * All that generator_increment() does not do.  False if there is nothing to
 * advance to yet: read the state anew.
 */
static pg_noinline bool
next_by_rules(uint64 *state, uint64 now, bool *waited, uint64 *next)
{
	NodeSlot   *slot = session.slot;
	uint64		allowance = allowance_ticks();
	uint64		last;
	bool		overflow;
	GeneratorVerdict verdict;

	/* whatever keeps a session from getting an ID, it can be cancelled */
	CHECK_FOR_INTERRUPTS();

	if (*state == NODE_STATE_CHANGING)
	{
		attach();
		return false;
	}

	observe_clock(slot, now);
	last = node_state_last(*state, &session.generator);
	verdict = generator_next(&session.generator, last, now, allowance,
							 pg_prng_uint32(&pg_global_prng_state), next);
	switch (verdict)
	{
		case GENERATOR_NEXT:
		case GENERATOR_NEXT_BY_OVERFLOW:
			/* a start only reads like a full counter */
			overflow = verdict == GENERATOR_NEXT_BY_OVERFLOW && last == *state;
			if (!is_durable(scru64_get_timestamp(*next), now, allowance,
							overflow) ||
				!node_state_advance(slot, state, *next))
				return false;
			if (overflow)
				pg_atomic_fetch_add_u64(&slot->counter_overflows, 1);
			return true;
		case GENERATOR_WAIT:
			if (!*waited)
			{
				pg_atomic_fetch_add_u64(&slot->waits, 1);
				log_wait(slot, last);
			}
			*waited = true;
			wait_for_clock(generator_due(&session.generator, last, allowance));
			return false;
		case GENERATOR_CLOCK_BEHIND:
			clock_behind(last);
			return false;
		case GENERATOR_EXHAUSTED:
			timestamps_exhausted();
			return false;
	}
	pg_unreachable();
}

/*
 * The next ID of the session's node.
 *
 * The clock is read before the state, so that little time passes, in which
 * another session could be faster, between reading and advancing it.  If one
 * was, and has read a later clock, then the state reads as ahead of the clock
 * here: the case that is provided for anyway.
 */
static uint64
next_id(void)
{
	bool		waited = false;

	for (;;)
	{
		uint64		now = clock_tick();
		uint64		state;
		uint64		next;

		if (unlikely(session.slot == NULL) ||
			unlikely(!node_state_read(session.slot, session.key, &state)))
		{
			attach();
			continue;
		}

		if (likely(generator_increment(&session.generator, state, now,
									   allowance_ticks(), &next)))
		{
			/* ahead of the clock, by load or because the clock went back */
			if (scru64_get_timestamp(next) != now)
				observe_clock(session.slot, now);
			if (likely(node_state_advance(session.slot, &state, next)))
				return next;
		}
		else if (next_by_rules(&state, now, &waited, &next))
			return next;
	}
}

/* scru64_generate() -> scru64: the next ID of the session's node. */
Datum
scru64_generate(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64((int64) next_id());
}

/*
 * scru64_generate(count integer) -> setof scru64
 *
 * The next count IDs in order; other sessions may have IDs in between.  22023
 * if count is negative.
 */
Datum
scru64_generate_count(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = PG_GETARG_INT32(0);

		if (count < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count must not be negative"),
					 errdetail("The count is %d.", count),
					 errhint("Ask for 0 or more IDs.")));
		funcctx = SRF_FIRSTCALL_INIT();
		funcctx->max_calls = (uint64) count;
	}

	funcctx = SRF_PERCALL_SETUP();
	if (funcctx->call_cntr < funcctx->max_calls)
		SRF_RETURN_NEXT(funcctx, Int64GetDatum((int64) next_id()));
	SRF_RETURN_DONE(funcctx);
}

/*
 * The view's function
 */

/* Time of an ID minus the clock. */
static Interval *
lead_interval(uint64 id, int64 now_ms)
{
	Interval   *lead = palloc0(sizeof(Interval));
	int64		id_ms = (int64) (scru64_get_timestamp(id) << SCRU64_TICK_SHIFT);

	lead->time = (id_ms - now_ms) * USECS_PER_MSEC;
	return lead;
}

/*
 * scru64_generators() -> setof record
 *
 * One row for each node in use on this server.  What depends on the last ID is
 * null for a node that has given out none.
 */
Datum
scru64_generators(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NodeReport	reports[NODE_SLOTS];
	int			count;
	int64		now_ms;

	InitMaterializedSRF(fcinfo, 0);
	count = node_state_report(reports);
	now_ms = clock_ms();

	for (int i = 0; i < count; i++)
	{
		const NodeReport *report = &reports[i];
		NodeSpec	spec = {.node = report->node,.node_prev = report->reached};
		char		spec_text[NODE_SPEC_BUFLEN];
		Datum		values[NUM_COLUMNS];
		bool		nulls[NUM_COLUMNS] = {0};

		node_spec_format(&spec, spec_text);
		values[COLUMN_NODE_ID] = Int32GetDatum((int32) report->node.node_id);
		values[COLUMN_NODE_ID_SIZE] = Int32GetDatum((int32) report->node.node_id_size);
		values[COLUMN_LAST_ID] = Int64GetDatum((int64) report->last_id);
		nulls[COLUMN_LAST_ID] = report->last_id == 0;
		values[COLUMN_NODE_SPEC] = CStringGetTextDatum(spec_text);
		values[COLUMN_DURABLE_UNTIL] = TimestampTzGetDatum(time_of_tick(report->durable));
		nulls[COLUMN_DURABLE_UNTIL] = report->durable == 0;
		values[COLUMN_LEAD] = IntervalPGetDatum(lead_interval(report->last_id, now_ms));
		nulls[COLUMN_LEAD] = report->last_id == 0;
		values[COLUMN_COUNTER_OVERFLOWS] = Int64GetDatum((int64) report->counter_overflows);
		values[COLUMN_CLOCK_ROLLBACKS] = Int64GetDatum((int64) report->clock_rollbacks);
		values[COLUMN_WAITS] = Int64GetDatum((int64) report->waits);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
