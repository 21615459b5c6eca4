/*-------------------------------------------------------------------------
 *
 * workload.c
 *		What sessions do.
 *
 *-------------------------------------------------------------------------
 */

extern Datum scru64_generate(PG_FUNCTION_ARGS);
extern Datum scru64_watermark(PG_FUNCTION_ARGS);
extern Datum scru64_check(PG_FUNCTION_ARGS);
extern Datum scru64_set_ceiling(PG_FUNCTION_ARGS);
extern Datum scru64_create_ceiling(PG_FUNCTION_ARGS);

/* A prepared transaction */
typedef struct Prepared
{
	bool		is_used;
	bool		is_busy;
	int			transaction;
} Prepared;

SERVER_LOCAL static Prepared prepared[MAX_PREPARED] = {{0}};
SERVER_LOCAL static LocalTransactionId last_lxids[MAX_PROCESSES] = {0};
SERVER_LOCAL static bool serials_are_set = false;	/* near their end, as after 16.7 million start markers */
HISTORY_LOCAL static int server_allowance = 0;

PROCESS_LOCAL static int transaction = -1;
PROCESS_LOCAL static bool has_snapshot = false, is_repeatable_read = false;
PROCESS_LOCAL static bool has_set_node = false;	/* in the open transaction */
PROCESS_LOCAL static NodeSpec node_before = {{0, 0}, 0};
PROCESS_LOCAL static uint64 snapshot_visible = 0;
PROCESS_LOCAL static int snapshot_sets = 0;

/*
 * Transactions
 */

void
begin_transaction(void)
{
	transaction = n_transactions;
	if (++n_transactions == MAX_TRANSACTIONS)
		end_history();
	transactions[transaction] = (Transaction) {.state = TRANSACTION_OPEN, .first_id = n_issued};
	compat_lxid(MyProc) = ++last_lxids[me->number];
	scru64_rollback_allowance = server_allowance;
	has_set_node = false;
	node_before = configured_node;
	begin_answers();
}

FN(static uint64, xid_if_any, (void),
   return MyProc->xid == 0 ? 0 : U64FromFullTransactionId(GetTopFullTransactionId());)

static void
call_callback(XactEvent event)
{
	xact_callback(event, NULL);
	scheduling_point();
}

/* For all new snapshots a process, or a prepared transaction, has no transaction any more. */
static void
clear_proc(PGPROC *proc, int ended, uint64 xid, TransactionState state)
{
	lock_procs();
	if (state != TRANSACTION_PREPARED)
		latest_completed = Max(latest_completed, xid);
	proc->xid = proc->xmin = InvalidTransactionId;
	compat_lxid(proc) = InvalidLocalTransactionId;
	if (state == TRANSACTION_COMMITTED)
		now_visible(ended);
	else if (ended >= 0)
		transactions[ended].state = state;
	scheduling_point();
}

static void
leave_transaction(TransactionState state, XactEvent event)
{
	clear_proc(MyProc, transaction, xid_if_any(), state);
	call_callback(event);
	transaction = -1;
	has_snapshot = false;
	forget_transaction_memory();
}

static void
commit(void)
{
	script("commit = ok\n");
	call_callback(XACT_EVENT_PRE_COMMIT);
	if (MyProc->xid != InvalidTransactionId)
	{
		XLogRecPtr	lsn = wal_insert(RECORD_COMMIT, transaction, xid_if_any());

		scheduling_point();
		if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF)
			XLogFlush(lsn);
		wait_for_standby(lsn);
	}
	leave_transaction(TRANSACTION_COMMITTED, XACT_EVENT_COMMIT);
}

static void
assign_node(NodeSpec spec)
{
	configured_node = spec;
	has_set_node = true;
	node_set_count = set_count;
	session_detach();
}

/* An aborted transaction takes back its SET. */
void
abort_transaction(void)
{
	release_everything();
	leave_transaction(TRANSACTION_ABORTED, XACT_EVENT_ABORT);
	if (has_set_node)
		assign_node(node_before);
	has_set_node = false;
}

static void
prepare(void)
{
	int			i = 0;
	uint64		xid;
	XLogRecPtr	lsn;

	script("prepare g%d = ", transaction);
	call_callback(XACT_EVENT_PRE_PREPARE);
	xid = transactions[transaction].xid = U64FromFullTransactionId(GetTopFullTransactionId());
	while (i < MAX_PREPARED && prepared[i].is_used)
		i++;
	if (i == MAX_PREPARED)
		raise_error(ERRCODE_OUT_OF_MEMORY, "maximum number of prepared transactions reached");
	prepared[i] = (Prepared) {.is_used = true, .is_busy = true, .transaction = transaction};
	lsn = wal_insert(RECORD_PREPARE, transaction, xid);
	XLogFlush(lsn);
	PreparedXactProcs[i].xid = (TransactionId) xid;
	scheduling_point();
	wait_for_standby(lsn);
	script("ok\n");
	leave_transaction(TRANSACTION_PREPARED, XACT_EVENT_PREPARE);
	prepared[i].is_busy = false;
}

/* Roll back, or commit, a prepared transaction. */
static void
finish_prepared(Prepared *entry)
{
	int			ended = entry->transaction;
	bool		commits = !one_in(3);

	script("%s g%d = ok\n", commits ? "commit_prepared" : "rollback_prepared", ended);
	entry->is_busy = true;
	scheduling_point();
	if (commits)
		XLogFlush(wal_insert(RECORD_COMMIT, ended, transactions[ended].xid));
	clear_proc(&PreparedXactProcs[entry - prepared], ended, transactions[ended].xid,
			   commits ? TRANSACTION_COMMITTED : TRANSACTION_ABORTED);
	entry->is_used = entry->is_busy = false;
}

/* The server has started: what the WAL says of each transaction */
void
recover_transactions(bool forks)
{
	int			n_prepared = 0;

	for (int i = 0; i < n_transactions; i++)
	{
		TransactionState before = transactions[i].state;

		transactions[i].state = transactions[i].recovered;
		/* a ROLLBACK PREPARED counts, though it is not in this WAL */
		if (transactions[i].state == TRANSACTION_PREPARED &&
			(before == TRANSACTION_ABORTED || n_prepared == MAX_PREPARED))
			transactions[i].state = TRANSACTION_ABORTED;
		else if (transactions[i].state == TRANSACTION_PREPARED)
		{
			PreparedXactProcs[n_prepared].xid = (TransactionId) transactions[i].xid;
			prepared[n_prepared++] = (Prepared) {.is_used = true, .transaction = i};
		}
		else if (transactions[i].state == TRANSACTION_COMMITTED && !forks && before != TRANSACTION_COMMITTED)
			now_visible(i);
	}
	for (int i = 0; i < n_issued; i++)
		issued[i].is_rolled_back |= transactions[issued[i].transaction].state == TRANSACTION_ABORTED;
}

/*
 * Statements
 */

static void
insert_row(int id)
{
	(void) wal_insert(RECORD_ANY, transaction, U64FromFullTransactionId(GetTopFullTransactionId()));
	issued[id].is_row = true;
	scheduling_point();
}

static int
generate(void)
{
	uint64		id;

	script("generate = ");
	id = (uint64) DatumGetInt64(call(scru64_generate, NULL));
	script(UINT64_FORMAT " " UINT64_FORMAT "\n", scru64_get_timestamp(id), ceiling_at(PG_UINT64_MAX));
	return got_id(id, transaction);
}

static void
generate_rows(int count)
{
	bool		inserts = !one_in(swarm.no_row_1in);

	for (; count > 0; count--)
	{
		int			id = generate();

		if (inserts)
			insert_row(id);
	}
}

static void
ask_for_watermark(void)
{
	uint64		watermark;

	script("watermark = ");
	watermark = (uint64) DatumGetInt64(call(scru64_watermark, NULL));
	got_watermark(watermark, snapshot_visible, snapshot_sets);
	script(UINT64_FORMAT "\n", scru64_get_timestamp(watermark));
}

/* SET scru64.node_spec: a node, perhaps with a node_prev, or the lease */
static void
set_node(void)
{
	NodeSpec	spec = {{0, 0}, 0};

	if (!swarm.has_worker || (swarm.realm_nodes > 1 && one_in(2)))
		spec.node = swarm.nodes[rnd(swarm.n_nodes)];
	if (spec.node.node_id_size != 0 && n_issued > 0 && one_in(6) && !is_script)
	{
		const Issued *prev = &issued[rnd(n_issued)];

		if (prev->key == node_key(spec.node))
			spec.node_prev = prev->id + (one_in(3) ? scru64_compose(rnd(20), 0) : 0);
	}
	trace("node %u/%u, node_prev " UINT64_FORMAT, spec.node.node_id, spec.node.node_id_size, spec.node_prev);
	script("node %u/%u = ok\n", spec.node.node_id, spec.node.node_id_size);
	assign_node(spec);
}

static void
set_ceiling(void)
{
	LOCAL_FCINFO(fcinfo, 1);
	int64		ms;

	if (swarm.is_corrected)
		clock_offset_ns = START_CLOCK;
	ms = (now_ns + clock_offset_ns) / MS;
	if (!swarm.is_corrected && one_in(2))
		ms = ((int64) max_tick - PICK(0, 0, 1, 2, 5, 100)) * SCRU64_TICK_MS + rnd(600);
	else if (!swarm.is_corrected && one_in(3))
		ms += rnd_scale(1, 100000);
	if (ms < SCRU64_TICK_MS)
		return;
	fcinfo->args[0].value = TimestampTzGetDatum(time_of_ns(ms * MS));
	begin_set((uint64) ms >> SCRU64_TICK_SHIFT);
	script("set_ceiling " INT64_FORMAT " = ", ms);
	(void) call(scru64_set_ceiling, fcinfo);
	script("ok\n");
}

static void
take_snapshot(void)
{
	if (has_snapshot && is_repeatable_read)
		return;
	if (one_in(2))
		MyProc->xmin = InvalidTransactionId;
	GetSnapshotData(&active_snapshot);
	snapshot_visible = visible_count;
	snapshot_watermark = 0;
	has_snapshot = true;
}

static void
run_statement(void)
{
	int			kind = (int) rnd(100);

	scru64_rollback_allowance = server_allowance;
	take_snapshot();
	if (one_in(swarm.serials_1in) && !serials_are_set && node_slots != NULL &&
		node_slots->lock.state.value == 0)
	{
		serials_are_set = true;
		node_slots->next_serial = SCRU64_MAX_NODE_CTR - rnd(6);
	}
	if (one_in(swarm.set_1in))
		set_ceiling();
	else if (kind < swarm.watermarks)
	{
		ask_for_watermark();
		if (one_in(3))
		{
			/* a statement that takes a while asks again */
			if (one_in(2))
				sleep_until(now_ns + rnd_scale(MS, 10 * SEC), NULL);
			ask_for_watermark();
		}
	}
	else if (kind < 70)
		generate_rows(1 + (int) rnd(4));
	else if (kind < 80)
		generate_rows(1 + (int) rnd(is_script ? 6 : 60));
	else if (kind < 83)
	{
		LOCAL_FCINFO(fcinfo, 0);

		script("check = ");
		(void) call(scru64_check, fcinfo);
		script("ok\n");
	}
	else if (kind < 90)
		set_node();
	else if (kind < 93)
	{
		/* ROLLBACK TO SAVEPOINT */
		for (int i = Max(n_issued - 4, 0); i < n_issued; i++)
			issued[i].is_rolled_back |= issued[i].transaction == transaction;
	}
	else
		sleep_until(now_ns + rnd_scale(MS, 3 * SEC), NULL);
}

static const char *const commit_levels[] = {"off", "local", "remote_write", "on", "remote_apply"};

static void
run_transaction(void)
{
	for (int i = 0; i < MAX_PREPARED; i++)
	{
		if (prepared[i].is_used && !prepared[i].is_busy && one_in(swarm.finish_1in))
			finish_prepared(&prepared[i]);
	}
	begin_transaction();
	snapshot_sets = set_count;
	is_repeatable_read = one_in(4);
	script("begin %s = ok\n", is_repeatable_read ? "repeatable_read" : "read_committed");
	synchronous_commit = (int) PICK(SYNCHRONOUS_COMMIT_OFF, SYNCHRONOUS_COMMIT_LOCAL_FLUSH,
									SYNCHRONOUS_COMMIT_REMOTE_FLUSH, SYNCHRONOUS_COMMIT_REMOTE_FLUSH,
									SYNCHRONOUS_COMMIT_REMOTE_APPLY);
	script("commit_level %s = ok\n", commit_levels[synchronous_commit]);
	if (one_in(5))
		(void) GetTopFullTransactionId();
	for (int n = 1 + (int) rnd(4); n > 0; n--)
		run_statement();
	if (one_in(swarm.prepare_1in) && max_prepared_xacts > 0)
		prepare();
	else if (one_in(6))
	{
		script("rollback = ok\n");
		abort_transaction();
	}
	else
		commit();
	if (one_in(3))
		sleep_until(now_ns + rnd_scale(MS, 2 * SEC), NULL);
}

/*
 * Processes
 */

static void
begin_session(void)
{
	begin_process();
	scru64_realm = swarm.has_worker ? "realm" : "";
	transactions_watch();
	set_node();
}

/* Run, and after an error abort.  Returns false after an error. */
static bool
run_caught(void (*run) (void))
{
	sigjmp_buf	top;

	if (sigsetjmp(top, 0) == 0)
	{
		PG_exception_stack = &top;
		run();
		return true;
	}
	script("error %s\n", unpack_sql_state(error_code));
	abort_transaction();
	return false;
}

static void
session_main(void)
{
	for (;;)
	{
		begin_session();
		do
		{
			if (!run_caught(run_transaction) && error_code != ERRCODE_QUERY_CANCELED &&
				error_code != ERRCODE_IO_ERROR)
				sleep_until(now_ns + rnd_scale(10 * MS, 10 * SEC), NULL);
		} while (!one_in(25) || is_script);
		load_pristine();
	}
}

/* CREATE EXTENSION */
static void
create_main(void)
{
	begin_process();
	(void) scru64_create_ceiling(NULL);
	crash("the extension is there");
}

void
start_workload(void)
{
	int			n = (int) swarm.sessions;

	if (incarnation == 1)
		server_allowance = is_script ? 10000 :
			(int) PICK(0, 200, 256, 512, 1000, 2000, 10000, 10000, 10000, 60000);
	for (int i = 0; i < n; i++)
		start_process(i, session_main);
	if (swarm.has_worker)
		start_process(n++, worker_main);
	for (int i = 0; i < n; i++)
	{
		if (one_in(3) && !is_script)
			processes[i].stalled_until = now_ns + rnd_scale(MS, 10 * SEC);
		if (i < swarm.sessions)
			processes[i].stalled_until = Max(processes[i].stalled_until, recovery_ends);
	}
}
