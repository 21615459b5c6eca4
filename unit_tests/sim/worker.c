/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The process of the lease worker, libpq, and the realm, which never gives two leases of a
 *		window.
 *
 * The worker itself is that of realm/worker/.  A query takes its time, and may be lost, as may its
 * answer, or what it has changed.  Where the worker goes to sleep, worker_sleeps() asks whether the
 * worker has done its work.
 *
 *-------------------------------------------------------------------------
 */

#define MIN_SIZE		20
#define SIZES			4
#define MAX_REALM_NODES	4		/* of a size */
#define SHORT_LEASE		8		/* ticks */
#define MAX_LEASES		256
#define FIELD_SIZE		40

#define MAX_REPEATED	3		/* some of the answers are lost */

/* Pauses of the worker, in ms; the longest is a third of the longest lease, and a tenth more */
#define LONGEST_PAUSE	221000
#define LONGEST_RETRY	61000
#define SHORTEST_PAUSE	1100

extern void scru64_start_lease_worker(Datum argument);
extern void scru64_lease_main(void);

/* A lease as the realm knows it */
typedef struct Lease
{
	int			id;
	Scru64Node	node;
	uint64		start_tick, limit_tick;
	uint64		last_id;		/* as reported; at first the one after which the lease begins */
	uint64		told_limit;		/* as the realm has told the worker last; 0: it has not */
	int			refusals;		/* that the worker was told */
	bool		is_over;		/* it is neither renewed nor released */
	bool		is_refused;		/* a renewal was refused */
	bool		is_unused;		/* its node overlaps one that is configured */
	bool		is_let_go;		/* released, or that was tried, or the worker does not know what it has */
} Lease;

/* What becomes of a query: up to QUERY_REFUSED it changes nothing; of those below, half do. */
typedef enum Fate
{
	QUERY_WARNED, QUERY_REFUSED, QUERY_FATAL, QUERY_DISCONNECTED, QUERY_UNANSWERED,
	QUERY_DONE
} Fate;

HISTORY_LOCAL static Lease leases[MAX_LEASES] = {{0}};	/* from 1 on */
HISTORY_LOCAL static int n_leases = 0, n_requests = 0;
HISTORY_LOCAL static int n_calls = 0;	/* with a lease that is not renewed, and no request for another one */

/* A connection; a lease is released over a second one while the first one is open. */
struct pg_conn
{
	bool		is_used, is_asked;
	ConnStatusType status;
	PQnoticeReceiver receiver;
	void	   *argument;		/* of the receiver */
	PGTransactionStatusType query_status;
	int64		answers_at;
	const ExecStatusType *next_result;	/* the last one is 0 */
};

PROCESS_LOCAL static PGconn connections[2] = {{0}};

/* The answer to the last query */
PROCESS_LOCAL static const char *severity = NULL, *sqlstate = NULL;
PROCESS_LOCAL static int n_fields = 0;
PROCESS_LOCAL static char fields[5][FIELD_SIZE] = {{0}};
PROCESS_LOCAL static Lease *told = NULL, *refused = NULL;	/* what the answer that is being received is about */
PROCESS_LOCAL static bool is_entering = false;	/* the realm's ID is asked for */

/* What the worker has published last, and what it has not noticed of the time since the last answer */
SERVER_LOCAL static LeaseInfo published = {0};
PROCESS_LOCAL static uint64 told_ms = 0, late_ms = 0;
PROCESS_LOCAL static bool was_evicted = false, is_called = false;
SERVER_LOCAL static NodeKey to_resume = 0;	/* the node of a worker that has failed */
SERVER_LOCAL static bool was_reloaded = false;	/* the worker's settings, since it began */
SERVER_LOCAL static TimestampTz slot_granted_at = 0;	/* of the lease that the slot has got last */

/* The worker's other variables */
SERVER_LOCAL volatile sig_atomic_t ConfigReloadPending = false, ShutdownRequestPending = false;
bool		IsUnderPostmaster = true;
PROCESS_LOCAL char *cluster_name = "";
PROCESS_LOCAL int PostPortNumber = 0;
PROCESS_LOCAL static sigjmp_buf *worker_ends = NULL;
PROCESS_LOCAL static pg_on_exit_callback before_exit = NULL;

/*
 * The realm
 */

FN(static uint64, realm_ms, (void), return (uint64) ((now_ns + START_CLOCK) / MS);)
FN(static uint64, realm_tick, (void), return realm_ms() >> SCRU64_TICK_SHIFT;)

bool
realm_has_leased(NodeKey key, uint64 tick)
{
	for (int i = 1; i <= n_leases; i++)
	{
		if (node_key(leases[i].node) == key && tick > leases[i].start_tick && tick <= leases[i].limit_tick)
			return true;
	}
	return false;
}

/* The last lease with this id, or of this node; leases[0], which is over, if there was none. */
static Lease *
find_lease(int id, NodeKey key)
{
	int			i = n_leases;

	while (i > 0 && leases[i].id != id && node_key(leases[i].node) != key)
		i--;
	return &leases[i];
}

FN(static uint64, new_limit, (const char *ttl),
   return realm_tick() + 2 + rnd(one_in(2) ? SHORT_LEASE : Min(swarm.lease_ticks, atoi(ttl) * 4));)
FN(static uint64, first_id, (const Lease *lease),
   return scru64_compose(lease->start_tick, scru64_node_base(lease->node) | scru64_max_counter(lease->node));)

/* The realm has nodes of each size, of which none overlaps another. */
FN(static Scru64Node, realm_node, (uint32 i),
   return ((Scru64Node) {.node_id_size = (uint8) (MIN_SIZE + i),
		   .node_id = (100 + MAX_REALM_NODES * i + rnd(swarm.realm_nodes)) << i});)

static const char *
grant(Lease *lease, int id, const char *const *params)
{
	uint32		i = (uint32) atoi(params[0]) - MIN_SIZE;

	if (lease->id == id)
		return NULL;
	*lease = (Lease) {.id = id, .start_tick = realm_tick(), .limit_tick = new_limit(params[2])};
	lease->node = realm_node(i);
	lease->last_id = first_id(lease);
	return find_lease(0, node_key(lease->node))->limit_tick >= realm_tick() ? "53400" : NULL;
}

/* The owner may have revoked the lease, and a failover may have lost it: others do not have it yet. */
static const char *
renew(Lease *lease, const char *ttl)
{
	uint64		limit = new_limit(ttl);

	if (one_in(15))
		return "55000";
	lease->limit_tick = Max(lease->limit_tick, limit);
	return NULL;
}

/* From here on others may have what is left of the window. */
static void
release(Lease *lease)
{
	uint64		greatest = greatest_of_node(node_key(lease->node), n_issued);

	if (greatest > lease->last_id)
		violation("a lease is released with the last ID " UINT64_FORMAT ", and " UINT64_FORMAT " was issued",
				  lease->last_id, greatest);
	lease->limit_tick = Min(lease->limit_tick, scru64_get_timestamp(lease->last_id));
	lease->is_over = true;
}

/* The last ID of a lease is reported; text: NULL if there is none. */
static void
note_last_id(Lease *lease, const char *text)
{
	uint64		id = 0;

	if (text == NULL)
		return;
	if (!base36_decode(text, strlen(text), &id) || scru64_get_timestamp(id) > lease->limit_tick ||
		(id & SCRU64_MAX_NODE_CTR) >> (SCRU64_NODE_CTR_SIZE - lease->node.node_id_size) != lease->node.node_id)
		violation("the last ID %s is not of its lease", text);
	lease->last_id = Max(lease->last_id, id);
}

/* The row that answers */
static void
answer(const Lease *lease)
{
	char		start[BASE36_DIGITS + 1] = "";

	base36_encode(first_id(lease), start);
	snprintf(fields[0], FIELD_SIZE, "%d", lease->id);
	snprintf(fields[1], FIELD_SIZE, "%s/%d", start, lease->node.node_id_size);
	snprintf(fields[2], FIELD_SIZE, UINT64_FORMAT "000", lease->start_tick << SCRU64_TICK_SHIFT);
	if (n_fields >= 2)
	{
		snprintf(fields[n_fields - 2], FIELD_SIZE, UINT64_FORMAT "000", lease->limit_tick << SCRU64_TICK_SHIFT);
		snprintf(fields[n_fields - 1], FIELD_SIZE, UINT64_FORMAT "000", realm_ms());
	}
}

/* The lease that the worker holds; leases[0] if there is none. */
static Lease *
held_lease(void)
{
	int			i = published.node.node_id_size != 0 ? n_leases : 0;

	while (i > 0 && (node_key(leases[i].node) != node_key(published.node) ||
					 time_of_ns((int64) (leases[i].start_tick << SCRU64_TICK_SHIFT) * MS) != published.granted_at))
		i--;
	return &leases[i];
}

/* The worker renews a lease, or releases it. */
static void
let_go(Lease *lease, bool releases)
{
	if (releases && lease->is_unused)
		violation("the lease of a node is released that is configured here");
	lease->is_let_go = true;
}

/* The worker has failed to connect, or it has failed: what it does not hold need not be released any more. */
static void
let_go_others(void)
{
	for (int i = 1; i <= n_leases; i++)
		leases[i].is_let_go |= &leases[i] != held_lease();
}

/* A lease, or its renewal, is refused for ever.  Returns the SQLSTATE. */
FN(static const char *, refuse, (Lease *lease, bool is_told),
   lease->is_refused = true; refused = is_told ? lease : NULL; return "55000";)

/* The worker has got the realm's last answer. */
static void
note_answer(void)
{
	const Lease *held = held_lease();

	if (told != NULL)
	{
		told->told_limit = told->limit_tick;
		told->is_let_go = told->is_unused;
		is_called = false;
	}
	if (refused != NULL && refused->id != 0 && ++refused->refusals > MAX_REPEATED)
		violation("what the realm refuses for lease %u/%u is asked for again", refused->node.node_id,
				  refused->node.node_id_size);
	/* a lease that is not renewed any more is to be replaced */
	if (is_entering && held->refusals > 0 && ++n_calls > MAX_REPEATED)
		violation("lease %u/%u is not replaced", held->node.node_id, held->node.node_id_size);
	told = refused = NULL;
	is_entering = false;
}

/* The worker begins something else: it has got no answer. */
static void
forget_answer(void)
{
	if (told != NULL)
		told->is_let_go = true;
	told = refused = NULL;
	is_entering = false;
}

FN(static bool, is_usual, (const Lease *lease),
   return !lease->is_let_go && !lease->is_over && !lease->is_refused;)

/* A new lease is asked for. */
static void
check_request(int size)
{
	const Lease *held = held_lease();

	if (held->told_limit > realm_tick() && held->node.node_id_size == size && !held->is_refused &&
		!held->is_over)
		violation("a lease is asked for in place of one that the realm renews");
}

/*
 * The worker goes to sleep.  It holds one lease at most, and has released all others.  Its sessions
 * have what it has.  It wakes before that lease is half over; it does not know of the time that the
 * last answer took.
 */
void
worker_sleeps(int64 ms)
{
	NodeKey		key = node_key(published.node);
	Lease	   *held = held_lease();
	bool		is_evicted = key != 0 && node_slots->leased.key.value == 0 &&
		!(published.is_standby_lease && RecoveryInProgress());

	forget_answer();
	for (int i = 1; i <= n_leases; i++)
	{
		const Lease *lease = &leases[i];

		if (lease != held && lease->told_limit > realm_tick() && is_usual(lease))
			violation("lease %u/%u is neither held nor released", lease->node.node_id, lease->node.node_id_size);
	}
	if (is_evicted && was_evicted)
		violation("lease %u/%u is kept, and sessions do not have its node", held->node.node_id, held->node.node_id_size);
	was_evicted = is_evicted;
	is_called &= key == 0 || is_evicted;
	if (ms > (is_called || published.failures > 0 ? LONGEST_RETRY : LONGEST_PAUSE))
		violation("the worker sleeps for " INT64_FORMAT " ms%s", ms, is_called ? ", and was called" : "");
	if (held->limit_tick <= realm_tick() || !is_usual(held))
		return;
	if (node_slots->leased.key.value == key && node_slots->leased.limit.value < held->told_limit)
		violation("the lease was renewed to " UINT64_FORMAT ", and sessions have " UINT64_FORMAT, held->told_limit,
				  node_slots->leased.limit.value);
	if (swarm.is_calm && published.failures == 0 &&
		ms > SHORTEST_PAUSE + (int64) (((held->limit_tick + 1) << SCRU64_TICK_SHIFT) - realm_ms() + late_ms) / 2)
		violation("the worker sleeps for " INT64_FORMAT " ms, and does not renew its lease", ms);
}

/* Do what a query asks for, and forget it unless it lasts.  Returns an SQLSTATE, or NULL. */
static const char *
execute(const char *sql, const char *const *params, Fate fate)
{
	bool		lasts = fate == QUERY_DONE || (fate > QUERY_REFUSED && one_in(2));
	bool		grants = strstr(sql, "realm.lease(") != NULL;
	bool		renews = strstr(sql, "realm.renew(") != NULL;
	int			id = params == NULL ? 0 : atoi(params[grants ? 4 : 0]);
	Lease	   *lease = find_lease(id, 0);
	Lease		changed = *lease;
	const char *error = NULL;

	n_fields = grants ? 5 : renews || params == NULL ? 2 : 1;
	snprintf(fields[0], FIELD_SIZE, "00000000-0000-4000-8000-00000000000%d", one_in(60));
	is_entering = params == NULL && fate == QUERY_DONE;
	if (params == NULL)
		return NULL;
	if (grants && lease->limit_tick <= realm_tick())
		check_request(atoi(params[0]));
	if ((lease->id != 0 || !grants) && (lease->is_over || lease->limit_tick <= realm_tick()))
		return refuse(lease, fate == QUERY_DONE);
	if (!grants)
		note_last_id(&changed, params[renews ? 2 : 1]);
	if (grants)
		error = grant(&changed, id, params);
	else if (renews)
		error = renew(&changed, params[1]);
	else
		release(&changed);
	if (error != NULL)
		return renews ? refuse(lease, fate == QUERY_DONE) : error;
	trace("the realm %s lease %u/%u from " UINT64_FORMAT " to " UINT64_FORMAT "%s",
		  grants ? "grants" : renews ? "renews" : "releases", changed.node.node_id, changed.node.node_id_size,
		  changed.start_tick, changed.limit_tick, lasts ? "" : ", and forgets it");
	answer(&changed);
	if (lasts && lease->id == 0)
		lease = &leases[++n_leases];
	if (lasts)
		*lease = changed;
	if (fate == QUERY_DONE && n_fields >= 2)
	{
		told = lease;
		told_ms = realm_ms();
	}
	if (n_leases == MAX_LEASES - 1)
		end_history();
	return NULL;
}

/*
 * libpq
 */

FN(static void, take_time, (void),
   if (one_in(3)) sleep_until(now_ns + rnd_scale(MS, one_in(10) ? 30 * SEC : SEC), NULL);)

/* One host, which the connection string need not name */
static PQconninfoOption options[] = {{.keyword = "host"}, {.keyword = "hostaddr"}, {.keyword = "port"}};

FN(PQconninfoOption *, PQconninfoParse, (const char *conninfo, char **error), return options;)
FN(PQconninfoOption *, PQconninfo, (PGconn *conn), return options;)

PGconn *
PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname)
{
	PGconn	   *conn = &connections[connections[0].is_used];

	if (one_in(50))
		raise_error(ERRCODE_OUT_OF_MEMORY, "the worker has failed");
	if (conn->is_used)
		violation("a connection is not closed");
	*conn = (PGconn) {.is_used = true, .status = CONNECTION_STARTED, .answers_at = now_ns + rnd_scale(MS, SEC)};
	return conn;
}

FN(PostgresPollingStatusType, PQconnectPoll, (PGconn *conn),
   conn->status = one_in(20) ? CONNECTION_BAD : CONNECTION_OK;
   return conn->status == CONNECTION_OK ? PGRES_POLLING_OK : PGRES_POLLING_FAILED;)
FN(ConnStatusType, PQstatus, (const PGconn *conn), return conn == NULL ? CONNECTION_BAD : conn->status;)
FN(PGTransactionStatusType, PQtransactionStatus, (const PGconn *conn),
   return conn == NULL ? PQTRANS_UNKNOWN : conn->query_status;)
FN(PQnoticeReceiver, PQsetNoticeReceiver, (PGconn *conn, PQnoticeReceiver receiver, void *argument),
   conn->receiver = receiver; conn->argument = argument; return NULL;)
FN(int, PQsocket, (const PGconn *conn), return (int) (conn - connections);)
FN(void, PQfinish, (PGconn *conn),
   if (conn != NULL) conn->is_used = false; if (conn != NULL && !conn->is_asked) let_go_others();)

int
WaitLatchOrSocket(Latch *latch, int events, pgsocket socket, long timeout_ms, uint32 wait_event)
{
	int64		ready_at = connections[socket].answers_at;
	int64		until = Min(now_ns + timeout_ms * MS, ready_at);

	check_wait();
	while (!latch->is_set && now_ns < until)
		sleep_until(until, latch);
	return (latch->is_set ? WL_LATCH_SET : 0) | (now_ns >= ready_at ? events & WL_SOCKET_MASK : 0);
}

int
PQsendQueryParams(PGconn *conn, const char *sql, int n, const Oid *types, const char *const *params,
				  const int *lengths, const int *formats, int result_format)
{
	static const ExecStatusType row[] = {PGRES_TUPLES_OK, 0};
	static const ExecStatusType error[] = {PGRES_FATAL_ERROR, 0};
	Fate		fate = one_in(6) ? (Fate) rnd(QUERY_DONE) : QUERY_DONE;

	conn->is_asked = conn->query_status == PQTRANS_IDLE;
	if (!conn->is_asked)
		return 0;
	forget_answer();
	if (strstr(sql, "realm.lease(") != NULL)
		n_calls = 0;
	else if (params != NULL)
		let_go(find_lease(atoi(params[0]), 0), strstr(sql, "realm.release(") != NULL);
	take_time();
	sqlstate = fate == QUERY_REFUSED ? "55P03" : execute(sql, params, fate);
	conn->next_result = row;
	severity = fate == QUERY_WARNED ? "WARNING" : "NOTICE";
	conn->receiver(conn->argument, NULL);
	severity = fate == QUERY_FATAL ? "FATAL" : fate == QUERY_DISCONNECTED ? NULL : "ERROR";
	if (fate == QUERY_FATAL || fate == QUERY_DISCONNECTED || sqlstate != NULL)
		conn->next_result = error;
	conn->query_status = PQTRANS_ACTIVE;
	take_time();
	conn->answers_at = fate == QUERY_UNANSWERED ? NEVER : now_ns + rnd_scale(MS, SEC);
	return 1;
}

FN(int, PQisBusy, (PGconn *conn), return now_ns < conn->answers_at;)
FN(ExecStatusType, PQresultStatus, (const PGresult *result), return *(const ExecStatusType *) result;)
FN(char *, PQresultErrorField, (const PGresult *result, int field),
   return unconstify(char *, field == PG_DIAG_SEVERITY_NONLOCALIZED ? severity : sqlstate);)
FN(int, PQnfields, (const PGresult *result), return n_fields;)
FN(char *, PQgetvalue, (const PGresult *result, int row, int field), return fields[field];)
FN(int, PQgetlength, (const PGresult *result, int row, int field), return (int) strlen(fields[field]);)

PGresult *
PQgetResult(PGconn *conn)
{
	if (*conn->next_result == PGRES_FATAL_ERROR && severity != NULL && strcmp(severity, "ERROR") == 0)
		note_answer();
	if (*conn->next_result != 0)
		return (PGresult *) conn->next_result++;
	conn->query_status = PQTRANS_IDLE;
	note_answer();
	return NULL;
}

/*
 * The rest of PostgreSQL
 */

FN(void, StartTransactionCommand, (void), begin_transaction();)
FN(void, CommitTransactionCommand, (void), if (page_owner == me) unlock_page(); commit();)
FN(void *, palloc0, (Size size), return memset(palloc(size), 0, size);)
FN(void *, MemoryContextAllocZero, (MemoryContext context, Size size),
   return memset(MemoryContextAlloc(context, size), 0, size);)
FN(char *, MemoryContextStrdup, (MemoryContext context, const char *text),
   return strcpy(MemoryContextAlloc(context, strlen(text) + 1), text);)
/* The worker begins its next step. */
FN(void, MemoryContextReset, (MemoryContext context), forget_transaction_memory(); points_of_call = 0;)
/* A text that differs from all others, as a UUID's */
FN(Datum, DirectFunctionCall1Coll, (PGFunction function, Oid collation, Datum argument),
   return CStringGetDatum(psprintf("%d", ++n_requests));)

/* Often the same one, so that a node is leased again soon */
FN(static int, any_size, (void), return MIN_SIZE + (int) rnd(one_in(3) ? SIZES : 1);)

void
ProcessConfigFile(GucContext context)
{
	scru64_realm = one_in(20) ? "" : one_in(3) ? "dbname=realm" : "realm";
	scru64_rollback_allowance = server_allowance;
	scru64_lease_ttl = (int) PICK(10, 60, 600);
	scru64_lease_node_id_size = any_size();
	scru64_lease_node_id_size_min = any_size();
	scru64_lease_holder = "holder";
	scru64_lease_within = one_in(2) ? "0/1" : "";
}

/* The worker keeps such a lease: if it were released, another server would get the node, too. */
FN(static bool, note_unused, (const HeldLease *lease, bool overlaps),
   find_lease(atoi(lease->lease_id), 0)->is_unused |= overlaps; return !overlaps;)

/*
 * A new lease that replaces none: its IDs may be below those before if a clock, the ceiling or the
 * allowance was set, or if the window may end before the next ID.
 */
bool
__wrap_scru64_leased_activate(const HeldLease *lease, uint64 now, uint64 *back_from)
{
	trace("lease %u/%u is activated", lease->node.node_id, lease->node.node_id_size);
	slot_granted_at = lease->granted_at;
	if (!swarm.is_calm || now + allowance_ticks() >= lease->limit_tick)
		begin_chain();
	return note_unused(lease, !scru64_leased_activate(lease, now, back_from));
}

bool
__wrap_scru64_leased_activate_above(const HeldLease *lease, uint64 timestamp)
{
	bool		is_active;

	slot_granted_at = lease->granted_at;
	is_active = note_unused(lease, !scru64_leased_activate_above(lease, timestamp));
	/* the worker leaves this one to its end, and another one to be renewed */
	if (!is_active)
		find_lease(atoi(lease->lease_id), 0)->is_let_go = true;
	return is_active;
}

Replacement
__wrap_scru64_leased_replace(const HeldLease *lease, uint64 *last_id)
{
	Replacement result;

	slot_granted_at = lease->granted_at;
	result = scru64_leased_replace(lease, last_id);
	(void) note_unused(lease, result == REPLACE_OVERLAPS);
	return result;
}

/* All that the worker has done since the last answer counts as time that it may not have noticed. */
void
__wrap_scru64_mailbox_set_info(const LeaseInfo *info)
{
	published = *info;
	if (to_resume != 0 && node_key(info->node) != to_resume)
		violation("the lease of a worker that has failed is not resumed");
	to_resume = 0;
	if (told_ms != 0)
		late_ms = realm_ms() - told_ms;
	told_ms = 0;
	scru64_mailbox_set_info(info);
}

FN(bool, __wrap_scru64_mailbox_was_called, (void),
   bool called = scru64_mailbox_was_called(); is_called |= called && node_slots->leased.key.value == 0;
   return called;)

/*
 * A session fails for want of a lease with an ID of this tick, or of any tick.  It was told of a
 * lease, and then read the slot: so it has the lease, if the slot still has the lease.
 */
static void
check_want(const LeaseInfo *info, uint64 tick)
{
	if (info->node.node_id_size != 0 && !info->is_standby_lease && info->granted_at == slot_granted_at &&
		node_key(info->node) == node_slots->leased.key.value && tick <= tick_of_time(info->expires_at))
		violation("a session does not get lease %u/%u, of which it was told", info->node.node_id,
				  info->node.node_id_size);
}

FN(void, __wrap_generate_fail_no_lease, (const LeaseInfo *info, bool has_worker_slot),
   check_want(info, 0); generate_fail_no_lease(info, has_worker_slot);)
FN(void, __wrap_generate_fail_lease_over, (const LeaseInfo *info, uint64 tick),
   check_want(info, tick); generate_fail_lease_over(info, tick);)

FN(void *, load_external_function, (const char *file, const char *name, bool is_needed, void **handle),
   return scru64_lease_main;)
FN(void, before_shmem_exit, (pg_on_exit_callback callback, Datum argument), before_exit = callback;)
FN(void, proc_exit, (int code),
   if (before_exit != NULL) before_exit(code, (Datum) 0); siglongjmp(*worker_ends, 1);)

/* SIGHUP or SIGTERM */
void
signal_worker(void)
{
	if (one_in(8))
		ShutdownRequestPending = true;
	else
		ConfigReloadPending = was_reloaded = true;
	n_calls = 0;				/* a signal ends a call */
	SetLatch(&procs[swarm.sessions].procLatch);
}

/*
 * A worker that has failed may leave a transaction open; the next one begins soon.  With the same
 * settings, it takes up the lease that the sessions have.
 */
void
worker_main(void)
{
	sigjmp_buf	end;

	for (;;)
	{
		const char *realm = scru64_realm;
		NodeKey		key = node_slots != NULL ? (NodeKey) node_slots->leased.key.value : 0;

		load_pristine();
		published = (LeaseInfo) {0};
		begin_process();
		let_go_others();
		ConfigReloadPending = ShutdownRequestPending = false;
		ProcessConfigFile(PGC_POSTMASTER);
		to_resume = swarm.is_calm && !was_reloaded && strcmp(realm, scru64_realm) == 0 ? key : 0;
		was_reloaded = false;
		transactions_watch();
		worker_ends = &end;
		if (sigsetjmp(end, 0) == 0)
			scru64_start_lease_worker((Datum) 0);
		abort_transaction();
		nap(rnd_scale(MS, 10 * SEC));
	}
}
