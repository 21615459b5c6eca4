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
 *	  A snapshot has one watermark, however often its session asks.
 *	- No ceiling is written that a clock of before scru64_set_ceiling() asks for, nor again and
 *	  again in a call.
 *
 * The rest is where it happens: schedule.c and server.c (all calls end, no lock is left, nothing
 * raises or waits under a lock), lockset.c, and worker.c (the worker gets leases, renews and
 * releases them).
 *
 * IDs go back where the pages say so: after scru64_set_ceiling() to a time before them, and in
 * another history.  Those of before are forgotten then.  What is under way at such a time is
 * of neither.
 *
 *-------------------------------------------------------------------------
 */

#define MAX_TRANSACTIONS 32768
#define MAX_ISSUED		32768
#define HASH_SIZE		65536

/* How far above the clock a ceiling may be: twice the greatest allowance, and looking ahead */
#define MAX_LEAD		(2 * 235 + 64)
#define MAX_RAISES		6

typedef enum TransactionState
{
	TRANSACTION_ABORTED, TRANSACTION_OPEN, TRANSACTION_PREPARED, TRANSACTION_COMMITTED
} TransactionState;

typedef struct Transaction
{
	uint64		xid;
	TransactionState state, recovered;	/* recovered: by the WAL */
	uint64		visible_at;		/* when new snapshots saw it: commits are counted */
	int			first_id;		/* its IDs are in issued[] from here on */
} Transaction;

typedef struct Issued
{
	uint64		id;
	NodeKey		key;
	int			transaction;
	uint64		greatest;		/* of the node's up to this one */
	bool		is_row;
	bool		is_rolled_back;	/* the row will never be seen */
	bool		is_forgotten;	/* may be issued again */
	bool		is_replicated;	/* its session has waited for the standby */
} Issued;

HISTORY_LOCAL Transaction transactions[MAX_TRANSACTIONS] = {{0}};
HISTORY_LOCAL Issued issued[MAX_ISSUED] = {{0}};
HISTORY_LOCAL int n_transactions = 0, n_issued = 0;
HISTORY_LOCAL int set_count = 0;	/* how often IDs or watermarks may have gone back */
HISTORY_LOCAL uint64 visible_count = 0;
HISTORY_LOCAL uint64 max_tick = 0;	/* of the IDs that count */

HISTORY_LOCAL static uint64 hash[HASH_SIZE] = {0};
HISTORY_LOCAL static uint64 greatest_watermark = 0;	/* of those that still hold */
HISTORY_LOCAL static uint64 before_crash = 0;	/* the greatest of before the last crash */

/* scru64_set_ceiling(): how many are under way, and the least of them; IDs are of later ticks */
SERVER_LOCAL static int sets_under_way = 0;
HISTORY_LOCAL static uint64 least_set = 0, floor_tick = 0;
HISTORY_LOCAL static int went_back_at = 0;	/* set_count when IDs went back last */

/* The last ceiling that was set, and the greatest clocks since that was over, and since it began */
HISTORY_LOCAL static uint64 highest_set = 0;
HISTORY_LOCAL static int64 highest_clock = 0, highest_since = 0;

HISTORY_LOCAL static int chain = 0;	/* a lease, and those whose IDs must be above its own */
HISTORY_LOCAL static uint64 last_of_chain = 0;
SERVER_LOCAL static uint32 seen_restarts = 0;

/* Of the call, of the node, of the session */
PROCESS_LOCAL static int call_set_count = 0, call_chain = 0, call_flushes = 0;
PROCESS_LOCAL static int first_of_call = 0;	/* n_issued when the call began */
PROCESS_LOCAL static uint32 call_restarts = 0;
PROCESS_LOCAL static bool is_setting = false;
PROCESS_LOCAL static uint64 min_of_chain = 0, setting = 0, last_watermark = 0;
PROCESS_LOCAL static int node_set_count = 0;	/* set_count when the session got its node */
PROCESS_LOCAL static uint32 last_restarts = 0, restarts_of_transaction = 0;
PROCESS_LOCAL uint64 snapshot_watermark = 0;	/* of the session's snapshot; 0: not yet */

/* The watermark may go back: those of before are about other IDs. */
FN(static void, forget_watermarks, (void), set_count++; greatest_watermark = before_crash = 0;)
FN(static bool, is_lasting_row, (const Issued *it),
   return it->is_row && !it->is_rolled_back && !it->is_forgotten;)

/* The greatest ID of a node among the first IDs that were issued; 0 if there is none. */
static uint64
greatest_of_node(NodeKey key, int n)
{
	while (n > 0 && (issued[n - 1].key != key || issued[n - 1].is_forgotten))
		n--;
	return n > 0 ? issued[n - 1].greatest : 0;
}

/* An ID counts.  Returns false if it was there. */
static bool
count_id(Issued *it)
{
	uint32		i = (uint32) (it->id * UINT64CONST(0x9E3779B97F4A7C15) >> 48) % HASH_SIZE;
	bool		is_new;

	while (hash[i] != 0 && hash[i] != it->id)
		i = (i + 1) % HASH_SIZE;
	is_new = hash[i] == 0;
	hash[i] = it->id;
	max_tick = Max(max_tick, scru64_get_timestamp(it->id));
	it->greatest = Max(it->id, greatest_of_node(it->key, (int) (it - issued)));
	return is_new;
}

/* IDs go back.  Another history keeps its rows, and after a failover what the standby has. */
void
forget_ids(bool keeps_rows, bool keeps_replicated)
{
	forget_watermarks();
	memset(hash, 0, sizeof(hash));
	max_tick = floor_tick = 0;
	went_back_at = set_count;
	for (int i = 0; i < n_issued; i++)
	{
		issued[i].is_forgotten |= !(keeps_rows && is_lasting_row(&issued[i])) &&
			!(keeps_replicated && issued[i].is_replicated);
		if (!issued[i].is_forgotten)
			(void) count_id(&issued[i]);
	}
}

/* A lease has the watermark go back if the clock was wrong before. */
static void
note_restarts(void)
{
	uint32		restarts = node_slots != NULL ? node_slots->watermark.restarts : seen_restarts;

	if (restarts != seen_restarts && restarts > 1 && swarm.has_worker)
		forget_watermarks();
	seen_restarts = restarts;
}

FN(void, begin_answers, (void), note_restarts(); restarts_of_transaction = seen_restarts;)

/* Call a function of the sources. */
Datum
call(PGFunction function, FunctionCallInfo fcinfo)
{
	Datum		result;

	note_restarts();
	call_restarts = seen_restarts;
	points_of_call = call_flushes = 0;
	me->call_ns = 1;
	call_set_count = set_count;
	call_chain = chain;
	min_of_chain = last_of_chain;
	first_of_call = n_issued;
	result = function(fcinfo);
	check_nothing_held();
	points_of_call = 0;
	me->call_ns = 0;
	return result;
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
		violation("an ID of tick " UINT64_FORMAT " is above the flushed ceiling " UINT64_FORMAT, tick,
				  ceiling_at(flushed));
	if (node_set_count == set_count && waits_for_standby() && tick > ceiling_at(standby_flushed))
		violation("an ID of tick " UINT64_FORMAT " is above the standby's ceiling", tick);
}

static void
check_id(Issued *it, uint64 tick)
{
	bool		is_leased = configured_node.node.node_id_size == 0;
	bool		is_in_chain = is_leased && call_chain == chain;
	uint64		id = it->id;

	if (!count_id(it))
		violation("ID " UINT64_FORMAT " of tick " UINT64_FORMAT " is issued twice", id, tick);
	if (id <= greatest_of_node(it->key, first_of_call) ||
		(!is_leased && node_set_count == set_count && id <= configured_node.node_prev))
		violation("ID " UINT64_FORMAT " is not above those before", id);
	if (!is_leased && tick <= floor_tick)
		violation("an ID of tick " UINT64_FORMAT " is not above the set ceiling", tick);
	if (is_leased && !realm_has_leased(it->key, tick))
		violation("an ID of tick " UINT64_FORMAT " is not of its lease", tick);
	if (is_in_chain && id <= min_of_chain)
		violation("ID " UINT64_FORMAT " is not above those of the lease before", id);
	check_ceilings(tick);
	if (is_in_chain)
		last_of_chain = Max(last_of_chain, id);
}

/* A session has got an ID, in a transaction.  Returns its number. */
int
got_id(uint64 id, int transaction)
{
	uint64		tick = scru64_get_timestamp(id);
	NodeKey		key = session_node.key;
	Scru64Node	node = node_of_key(key);
	Issued	   *it = &issued[n_issued];
	bool		counts;

	note_restarts();
	/* the pages say that no node of a realm is to be configured */
	counts = call_set_count == set_count && key != swarm.configured_key;
	trace("ID of tick " UINT64_FORMAT ", node_ctr %06x, node %u/%u%s", tick,
		  (uint32) id & SCRU64_MAX_NODE_CTR, node.node_id, node.node_id_size,
		  counts ? "" : ": does not count");
	if ((id & SCRU64_MAX_NODE_CTR) >> (SCRU64_NODE_CTR_SIZE - node.node_id_size) != node.node_id ||
		(configured_node.node.node_id_size != 0 && node_key(configured_node.node) != key))
		violation("ID " UINT64_FORMAT " is not of its node", id);
	if (tick < SCRU64_FIRST_TIMESTAMP || tick > SCRU64_LAST_TIMESTAMP)
		violation("ID " UINT64_FORMAT " is reserved", id);
	*it = (Issued) {.id = id, .key = key, .transaction = transaction, .is_forgotten = !counts,
		.is_replicated = counts && node_set_count == set_count && waits_for_standby()};
	if (counts)
		check_id(it, tick);
	if (++n_issued == MAX_ISSUED)
		end_history();
	return n_issued - 1;
}

/*
 * Rows and watermarks
 */

/* Transactions that a watermark's snapshot does not see have no row below it, from one ID on. */
static void
check_missed(uint64 watermark, uint64 visible_at, int first)
{
	for (int i = n_issued - 1; i >= first; i--)
	{
		Transaction *transaction = &transactions[issued[i].transaction];

		if (issued[i].id < watermark && is_lasting_row(&issued[i]) &&
			transaction->state == TRANSACTION_COMMITTED && transaction->visible_at > visible_at)
			violation("the watermark " UINT64_FORMAT " misses a row with the ID " UINT64_FORMAT,
					  watermark, issued[i].id);
	}
}

/* New snapshots see a transaction as committed. */
void
now_visible(int transaction)
{
	note_restarts();
	transactions[transaction].state = TRANSACTION_COMMITTED;
	transactions[transaction].visible_at = ++visible_count;
	check_missed(greatest_watermark, visible_count - 1, transactions[transaction].first_id);
}

/* A session has got a watermark for a snapshot, of when visible_count and set_count were these. */
void
got_watermark(uint64 watermark, uint64 visible_at, int set_count_then)
{
	note_restarts();
	trace("watermark " UINT64_FORMAT " of tick " UINT64_FORMAT, watermark, scru64_get_timestamp(watermark));
	if (snapshot_watermark != 0 && watermark != snapshot_watermark)
		violation("a snapshot has two watermarks, " UINT64_FORMAT " and " UINT64_FORMAT, snapshot_watermark,
				  watermark);
	snapshot_watermark = watermark;
	if (call_set_count != set_count || set_count_then != set_count)
		return;
	check_missed(watermark, visible_at, 0);
	if (sets_under_way > 0 || node_slots->floor > ceiling_at(flushed) || call_restarts != seen_restarts)
		return;
	/* 0: no answer that the server remembers holds for the snapshot */
	if (watermark != 0 && watermark < before_crash)
		violation("the watermark falls to " UINT64_FORMAT " by a crash", watermark);
	if (last_restarts == seen_restarts && watermark < last_watermark)
		violation("the watermark of a session falls to " UINT64_FORMAT, watermark);
	if (scru64_get_timestamp(watermark) > Max(ceiling_at(PG_UINT64_MAX), max_tick) + 1)
		violation("the watermark " UINT64_FORMAT " is above the ceiling", watermark);
	/* the transaction may have had the answer since it began */
	if (last_watermark != watermark)
		last_restarts = restarts_of_transaction;
	last_watermark = watermark;
	greatest_watermark = Max(greatest_watermark, watermark);
}

/* Another lease begins, whose IDs may be below those before. */
FN(void, begin_chain, (void), chain++; last_of_chain = 0;)

/*
 * The ceiling
 */

void
begin_set(uint64 tick)
{
	trace("scru64_set_ceiling() to " UINT64_FORMAT, tick);
	is_setting = true;
	setting = tick;
	least_set = sets_under_way > 0 ? Min(least_set, tick) : tick;
	if (sets_under_way++ == 0)
		highest_since = now_ns + clock_offset_ns;
}

/* A ceiling is set, or may be set: IDs of later ticks may be issued again. */
static void
go_back_to(uint64 tick)
{
	if (tick < max_tick)
		forget_ids(false, false);
	else
		forget_watermarks();
}

/* The page is unlocked by a process that may be setting it, or by an error. */
void
end_set(bool has_failed)
{
	if (has_failed)
		me->call_ns = 0;
	if (!is_setting)
		return;
	is_setting = false;
	sets_under_way--;
	if (has_failed)
	{
		forget_watermarks();
		return;
	}
	go_back_to(setting);
	floor_tick = highest_set = setting;
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
		go_back_to(least_set);
		floor_tick = 0;
	}
	before_crash = Max(before_crash, greatest_watermark);
}
