/*-------------------------------------------------------------------------
 *
 * check.c
 *		What must hold, in every history that a client could have seen:
 *
 *	- No ID is issued twice; each is of its node, above all that were returned for the node
 *	  before the call, above the set ceiling, within the lease, and of a tick at or below the
 *	  flushed ceiling (where the session waits for the standby, at or below the standby's).
 *	- No row below a watermark becomes visible after the snapshot of the watermark, which never
 *	  falls for a session, nor by a crash, and is at or below the first ID after a restart.
 *	- No ceiling is written that a clock of before scru64_set_ceiling() asks for, nor again and
 *	  again in a call.
 *
 * The rest (all calls end, no lock is left, nothing raises or waits under a lock) is where it
 * happens: schedule.c and server.c.
 *
 * IDs go back where the pages say so: after scru64_set_ceiling() to a time before them, and in
 * another history.  Those of before are forgotten then.  What is under way at such a time is
 * of neither.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include "generate/session.h"
#include "shmem/slots.h"

#define HASH_SIZE		65536
#define MAX_REPORTS		16384
#define MAX_WINDOWS		256
#define MAX_KEYS		16

/* How far above the clock a ceiling may be: twice the greatest allowance, and looking ahead */
#define MAX_LEAD		(2 * 235 + 64)
#define MAX_RAISES		6

typedef struct Window
{
	NodeKey		key;
	uint64		start;
	uint64		limit;
} Window;

HISTORY_LOCAL Transaction transactions[MAX_TRANSACTIONS] = {{0}};
HISTORY_LOCAL Issued issued[MAX_ISSUED] = {{0}};
HISTORY_LOCAL int n_transactions = 0, n_issued = 0, set_count = 0;
HISTORY_LOCAL uint64 visible_count = 0, max_tick = 0;

HISTORY_LOCAL static uint64 hash[HASH_SIZE] = {0};
HISTORY_LOCAL static NodeKey keys[MAX_KEYS] = {0};
HISTORY_LOCAL static uint64 last_ids[MAX_KEYS] = {0};	/* the greatest that was returned, of each node */
HISTORY_LOCAL static uint64 reports[MAX_REPORTS] = {0};	/* watermarks */
HISTORY_LOCAL static Window windows[MAX_WINDOWS] = {{0}};
HISTORY_LOCAL static int n_reports = 0, n_windows = 0;
HISTORY_LOCAL static uint64 before_crash = 0;	/* the greatest watermark of before */

/* scru64_set_ceiling(): how many are under way, and the least of them; IDs are of later ticks */
SERVER_LOCAL static int sets_under_way = 0;
HISTORY_LOCAL static uint64 least_set = 0, floor_tick = 0;
HISTORY_LOCAL static int went_back_at = 0;	/* set_count when IDs went back last */

/* The last ceiling that was set, and the greatest clocks since that was over, and since it began */
HISTORY_LOCAL static uint64 highest_set = 0;
HISTORY_LOCAL static int64 highest_clock = 0, highest_since = 0;

HISTORY_LOCAL static int chain = 0;	/* a lease, and those that have replaced it */
HISTORY_LOCAL static uint64 last_of_chain = 0;
SERVER_LOCAL static uint32 seen_restarts = 0;

/* Of the call, of the node, of the session */
PROCESS_LOCAL static int call_set_count = 0, call_chain = 0, call_flushes = 0;
PROCESS_LOCAL static uint32 call_restarts = 0;
PROCESS_LOCAL static bool is_in_call = false, is_setting = false;
PROCESS_LOCAL static uint64 min_ids[MAX_KEYS] = {0};
PROCESS_LOCAL static uint64 min_of_chain = 0, setting = 0, last_watermark = 0;
PROCESS_LOCAL static int node_set_count = 0;
PROCESS_LOCAL static uint32 last_restarts = 0;

/* The watermark may go back: those of before are about other IDs. */
FN(static void, forget_reports, (void), set_count++; n_reports = 0; before_crash = 0;)

/* IDs go back. */
static void
forget_ids(void)
{
	forget_reports();
	memset(hash, 0, sizeof(hash));
	memset(last_ids, 0, sizeof(last_ids));
	for (int i = 0; i < n_issued; i++)
		issued[i].is_forgotten = true;
	max_tick = 0;
	went_back_at = set_count;
}

/* The page is lost, and with it the set ceiling; the clock may have been set back. */
FN(void, page_is_lost, (void), forget_ids(); floor_tick = 0;)

/* A lease has the watermark go back if the clock was wrong before. */
static void
note_restarts(void)
{
	uint32		restarts = node_slots != NULL ? node_slots->watermark.restarts : seen_restarts;

	if (restarts != seen_restarts && restarts > 1 && swarm.has_worker)
		forget_reports();
	seen_restarts = restarts;
}

/* Returns false if the ID was there. */
static bool
put_id(uint64 id)
{
	uint32		i = (uint32) (id * UINT64CONST(0x9E3779B97F4A7C15) >> 48) % HASH_SIZE;

	while (hash[i] != 0 && hash[i] != id)
		i = (i + 1) % HASH_SIZE;
	if (hash[i] == id)
		return false;
	hash[i] = id;
	return true;
}

static int
number_of_key(NodeKey key)
{
	int			i = 0;

	while (keys[i] != key && keys[i] != 0)
		i++;
	keys[i] = key;
	return i;
}

/*
 * Calls
 */

void
begin_call(void)
{
	note_restarts();
	call_restarts = seen_restarts;
	points_of_call = call_flushes = 0;
	is_in_call = true;
	call_set_count = set_count;
	call_chain = chain;
	min_of_chain = last_of_chain;
	memcpy(min_ids, last_ids, sizeof(min_ids));
}

FN(void, end_call, (const char *what), check_nothing_held(what); points_of_call = 0; is_in_call = false;)

/* The session has got its node: it opens its ticks anew. */
FN(void, node_is_set, (void), node_set_count = set_count;)

static bool
is_in_window(NodeKey key, uint64 tick)
{
	for (int i = 0; i < n_windows; i++)
	{
		if (windows[i].key == key && tick > windows[i].start && tick <= windows[i].limit)
			return true;
	}
	return false;
}

/*
 * The ceilings that count for the ID.  A session opens a tick once: after scru64_set_ceiling()
 * it may continue in the tick.
 */
static void
check_ceilings(uint64 tick)
{
	if (sets_under_way > 0)
		return;
	if (node_set_count >= went_back_at && tick > ceiling_at(flushed))
		violation("an ID of tick " UINT64_FORMAT " is above the flushed ceiling " UINT64_FORMAT, tick, ceiling_at(flushed));
	if (node_set_count == set_count && waits_for_standby() && tick > ceiling_at(standby_flushed))
		violation("an ID of tick " UINT64_FORMAT " is above the standby's ceiling", tick);
}

static void
check_id(uint64 id, uint64 tick, int number)
{
	bool		is_leased = configured_node.node.node_id_size == 0;

	if (!put_id(id))
		violation("ID " UINT64_FORMAT " of tick " UINT64_FORMAT " is issued twice", id, tick);
	if (id <= min_ids[number] ||
		(!is_leased && node_set_count == set_count && id <= configured_node.node_prev))
		violation("ID " UINT64_FORMAT " is not above those before", id);
	if (!is_leased && tick <= floor_tick)
		violation("an ID of tick " UINT64_FORMAT " is not above the set ceiling", tick);
	if (is_leased && !is_in_window(keys[number], tick))
		violation("an ID of tick " UINT64_FORMAT " is not of its lease", tick);
	if (is_leased && call_chain == chain && id <= min_of_chain)
		violation("ID " UINT64_FORMAT " is not above those of the lease before", id);
	check_ceilings(tick);
	max_tick = Max(max_tick, tick);
	last_ids[number] = Max(last_ids[number], id);
	if (is_leased && call_chain == chain)
		last_of_chain = Max(last_of_chain, id);
}

/* A session has got an ID, in a transaction.  Returns its number. */
int
got_id(uint64 id, int transaction)
{
	uint64		tick = scru64_get_timestamp(id);
	NodeKey		key = session_node.key;
	Scru64Node	node = node_of_key(key);
	bool		counts;

	note_restarts();
	counts = call_set_count == set_count;
	trace("ID of tick " UINT64_FORMAT ", node_ctr %06x, node %u/%u%s", tick, (uint32) id & SCRU64_MAX_NODE_CTR,
		  node.node_id, node.node_id_size, counts ? "" : ": does not count");
	if ((id & SCRU64_MAX_NODE_CTR) >> (SCRU64_NODE_CTR_SIZE - node.node_id_size) != node.node_id ||
		(configured_node.node.node_id_size != 0 && node_key(configured_node.node) != key))
		violation("ID " UINT64_FORMAT " is not of its node", id);
	if (tick < SCRU64_FIRST_TIMESTAMP || tick > SCRU64_LAST_TIMESTAMP)
		violation("ID " UINT64_FORMAT " is reserved", id);
	if (counts)
		check_id(id, tick, number_of_key(key));
	issued[n_issued] = (Issued) {.id = id, .key = key, .transaction = transaction, .is_forgotten = !counts,
		.is_replicated = counts && node_set_count == set_count && waits_for_standby()};
	if (++n_issued == MAX_ISSUED)
		end_history();
	return n_issued - 1;
}

void
call_has_flushed(void)
{
	if (swarm.is_slow && !is_weak && is_in_call && ++call_flushes > MAX_RAISES)
		violation("a call raises the ceiling again and again");
}

/*
 * Rows and watermarks
 */

/* New snapshots see a transaction as committed. */
void
now_visible(int transaction)
{
	note_restarts();
	transactions[transaction].state = TRANSACTION_COMMITTED;
	transactions[transaction].visible_at = ++visible_count;
	for (int i = transactions[transaction].first_id; i < n_issued; i++)
	{
		if (issued[i].transaction != transaction || !issued[i].is_row || issued[i].is_rolled_back || issued[i].is_forgotten)
			continue;
		for (int r = 0; r < n_reports; r++)
		{
			if (issued[i].id < reports[r])
				violation("a row with the ID " UINT64_FORMAT " is committed after the watermark " UINT64_FORMAT,
						  issued[i].id, reports[r]);
		}
	}
}

/* A row below the watermark that the snapshot does not see has been committed since. */
static void
check_missed(uint64 watermark, uint64 visible_at)
{
	for (int i = n_issued - 1; i >= 0; i--)
	{
		Transaction *transaction = &transactions[issued[i].transaction];

		if (issued[i].id < watermark && issued[i].is_row && !issued[i].is_rolled_back && !issued[i].is_forgotten &&
			transaction->state == TRANSACTION_COMMITTED && transaction->visible_at > visible_at)
			violation("the watermark " UINT64_FORMAT " misses a row with the ID " UINT64_FORMAT, watermark, issued[i].id);
	}
}

/* A session has got a watermark for a snapshot, of when visible_count and set_count were these. */
void
got_watermark(uint64 watermark, uint64 visible_at, int set_count_then)
{
	note_restarts();
	trace("watermark " UINT64_FORMAT " of tick " UINT64_FORMAT, watermark, scru64_get_timestamp(watermark));
	if (call_set_count != set_count || set_count_then != set_count)
		return;
	check_missed(watermark, visible_at);
	if (sets_under_way > 0 || node_slots->floor > ceiling_at(flushed) || call_restarts != seen_restarts)
		return;
	/* 0: no answer that the server remembers holds for the snapshot */
	if (watermark != 0 && watermark < before_crash)
		violation("the watermark falls to " UINT64_FORMAT " by a crash", watermark);
	if (last_restarts == seen_restarts && watermark < last_watermark)
		violation("the watermark of a session falls to " UINT64_FORMAT, watermark);
	if (scru64_get_timestamp(watermark) > Max(ceiling_at(PG_UINT64_MAX), max_tick) + 1)
		violation("the watermark " UINT64_FORMAT " is above the ceiling", watermark);
	if (last_watermark != watermark)
		last_restarts = seen_restarts;
	last_watermark = watermark;
	reports[n_reports] = watermark;
	if (++n_reports == MAX_REPORTS)
		end_history();
}

/*
 * Leases
 */

void
lease_granted(NodeKey key, uint64 start, uint64 limit)
{
	windows[n_windows] = (Window) {.key = key, .start = start, .limit = limit};
	if (++n_windows == MAX_WINDOWS)
		end_history();
}

/* A lease is renewed, or given back. */
void
lease_limit_moves(NodeKey key, uint64 old_limit, uint64 limit)
{
	for (int i = 0; i < n_windows; i++)
	{
		if (windows[i].key == key && windows[i].limit == old_limit)
			windows[i].limit = limit;
	}
}

/* Another lease begins, and does not replace one. */
FN(void, begin_chain, (void), chain++; last_of_chain = 0;)

/*
 * The ceiling
 */

FN(void, clock_is_read, (int64 ns), highest_clock = Max(highest_clock, ns); highest_since = Max(highest_since, ns);)

void
begin_set(uint64 tick)
{
	trace("scru64_set_ceiling() to " UINT64_FORMAT, tick);
	is_setting = true;
	setting = tick;
	if (sets_under_way++ > 0)
		least_set = Min(least_set, tick);
	else
	{
		least_set = tick;
		highest_since = now_ns + clock_offset_ns;
	}
}

/* The page is unlocked by a process that may be setting it, or by an error. */
void
end_set(bool has_failed)
{
	is_in_call &= !has_failed;
	if (!is_setting)
		return;
	is_setting = false;
	sets_under_way--;
	if (has_failed || setting >= max_tick)
		forget_reports();
	else
		forget_ids();
	if (has_failed)
		return;
	floor_tick = setting;
	highest_set = setting;
	highest_clock = Max(highest_since, now_ns + clock_offset_ns);
}

void
ceiling_is_written(uint64 ceiling)
{
	uint64		most = Max((uint64) (highest_clock / MS) >> SCRU64_TICK_SHIFT, highest_set) + MAX_LEAD;

	if (!is_setting && ceiling > most)
		violation("the ceiling is raised to " UINT64_FORMAT " by a clock of before", ceiling);
	if (is_setting)
		highest_set = Max(highest_set, setting);
}

/*
 * Starts and ends
 */

void
begin_incarnation(void)
{
	highest_clock = highest_since = now_ns + clock_offset_ns;
	highest_set = ceiling_at(flushed);
	begin_chain();
}

/* A crash: a ceiling that was being set is set, or not. */
void
end_incarnation(void)
{
	if (sets_under_way > 0)
	{
		if (least_set < max_tick)
			forget_ids();
		else
			forget_reports();
		floor_tick = 0;
	}
	sets_under_way = 0;
	for (int i = 0; i < n_reports; i++)
		before_crash = Max(before_crash, reports[i]);
}

/* Another history begins: only rows that are there count, and IDs that a failover keeps. */
void
history_forks(bool is_failover)
{
	static bool counts[MAX_ISSUED];

	for (int i = 0; i < n_issued; i++)
		counts[i] = !issued[i].is_forgotten &&
			((issued[i].is_row && !issued[i].is_rolled_back) || (is_failover && issued[i].is_replicated));
	forget_ids();
	floor_tick = 0;
	for (int i = 0; i < n_issued; i++)
	{
		int			number = number_of_key(issued[i].key);

		if (!counts[i])
			continue;
		issued[i].is_forgotten = false;
		(void) put_id(issued[i].id);
		max_tick = Max(max_tick, scru64_get_timestamp(issued[i].id));
		last_ids[number] = Max(last_ids[number], issued[i].id);
	}
}
