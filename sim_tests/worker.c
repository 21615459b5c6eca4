/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The lease worker, and its realm, which never gives two leases of a window.
 *
 *-------------------------------------------------------------------------
 */

#define MIN_SIZE		20
#define SHORT_LEASE		8		/* ticks */
#define MAX_LEASES		256

extern void scru64_start_lease_worker(Datum argument);

HISTORY_LOCAL static HeldLease leases[MAX_LEASES] = {{{0}}};	/* as the realm knows them, from 1 on */
HISTORY_LOCAL static int n_leases = 0;
PROCESS_LOCAL static HeldLease held = {{0}};
PROCESS_LOCAL static bool has_looked = false;
PROCESS_LOCAL static sigjmp_buf *worker_ends = NULL;
PROCESS_LOCAL static pg_on_exit_callback before_exit = NULL;

FN(static uint64, realm_tick, (void),
   return (uint64) ((now_ns + START_CLOCK) / MS) >> SCRU64_TICK_SHIFT;)
FN(static uint64, new_limit, (void),
   return realm_tick() + 2 + rnd(one_in(2) ? SHORT_LEASE : swarm.lease_ticks);)

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

/* The last lease of a node; leases[0], which is over, if there was none. */
static HeldLease *
last_lease(Scru64Node node)
{
	int			i = n_leases;

	while (i > 0 && node_key(leases[i].node) != node_key(node))
		i--;
	return &leases[i];
}

/* The realm has a node of each size from MIN_SIZE on. */
static bool
realm_lease(HeldLease *lease)
{
	uint32		i = rnd(swarm.realm_nodes);

	*lease = (HeldLease) {.lease_id = "x",
		.node = {.node_id_size = (uint8) (MIN_SIZE + i), .node_id = (100 + i) << i}};
	if (last_lease(lease->node)->limit_tick >= realm_tick())
		return false;
	lease->start_tick = realm_tick();
	lease->limit_tick = new_limit();
	if (++n_leases == MAX_LEASES)
		end_history();
	leases[n_leases] = *lease;
	return true;
}

/* Renew a lease, or take it back. */
static void
move_limit(HeldLease *lease, uint64 limit)
{
	HeldLease  *last = last_lease(lease->node);

	if (last->limit_tick == lease->limit_tick)
		last->limit_tick = lease->limit_tick = limit;
}

static void
realm_release(HeldLease *lease, uint64 last_id)
{
	uint64		last_tick = scru64_get_timestamp(last_id);

	if (last_tick >= lease->start_tick && last_tick <= lease->limit_tick)
		move_limit(lease, last_tick);
}

FN(static void, publish, (bool is_busy),
   LeaseInfo info = {.worker_pid = MyProcPid, .busy = is_busy, .node = held.node};
   scru64_lease_set_info(&info);)

static void
end_lease(void)
{
	uint64		last_id = scru64_leased_end();

	if (held.lease_id[0] != '\0' && last_id != 0)
		realm_release(&held, last_id);
	held.lease_id[0] = '\0';
}

/* A worker that begins, or whose lease is gone, goes on with the saved lease if it may. */
static void
resume_lease(void)
{
	uint64		ceiling = scru64_ceiling_lock();
	uint64		back_from;
	HeldLease	saved;
	NodeReport	report;
	bool		resumes = scru64_leased_recall(&saved) &&
		(scru64_leased_report(&report) ||
		 (saved.start_tick < ceiling && ceiling <= saved.limit_tick &&
		  scru64_leased_activate(&saved, ceiling, 0, &back_from)));

	release_everything();
	if (resumes)
		held = saved;
	else
		end_lease();
	trace("the lease is %s", resumes ? "resumed" : "gone");
}

static void
take_lease(void)
{
	HeldLease	next;
	uint64		own_tick;
	uint64		back_from;

	if (!realm_lease(&next))
		return;
	if (one_in(3))
		sleep_until(now_ns + rnd_scale(MS, SEC), NULL);
	trace("lease %u/%u from " UINT64_FORMAT " to " UINT64_FORMAT, next.node.node_id, next.node.node_id_size,
		  next.start_tick, next.limit_tick);
	(void) scru64_leased_end();
	begin_chain();
	own_tick = (uint64) Max(now_ns + clock_offset_ns, 0) / MS >> SCRU64_TICK_SHIFT;
	if (scru64_leased_activate(&next, next.start_tick, Max(next.start_tick, own_tick), &back_from))
		held = next;
}

static void
replace_lease(void)
{
	HeldLease	next;
	uint64		last_id;

	if (!realm_lease(&next))
		return;
	if (scru64_leased_replace(&next, &last_id) == REPLACE_DONE)
	{
		trace("lease %u/%u replaces", next.node.node_id, next.node.node_id_size);
		realm_release(&held, last_id);
		held = next;
	}
	else
		realm_release(&next, scru64_compose(next.start_tick, 0));
}

static void
renew_lease(void)
{
	uint64		limit = new_limit();

	if (realm_tick() <= held.limit_tick && limit > held.limit_tick)
		move_limit(&held, limit);
	if (one_in(3))
		sleep_until(now_ns + rnd_scale(MS, SEC), NULL);
	scru64_leased_update(&held);
	if (realm_tick() > held.limit_tick)
		end_lease();
}

/* What the library of the lease worker does: each time, one of what it may do */
static void
lease_main(Datum name)
{
	NodeReport	report;

	while (!one_in(100))
	{
		begin_transaction();
		publish(true);
		(void) scru64_lease_was_called();
		if (scru64_ceiling_load_page())
		{
			if (!has_looked || (held.lease_id[0] != '\0' && !scru64_leased_report(&report)))
				resume_lease();
			has_looked = true;
			if (held.lease_id[0] == '\0')
				take_lease();
			else if (one_in(8))
				end_lease();
			else if (one_in(8))
				replace_lease();
			else
				renew_lease();
		}
		publish(false);
		abort_transaction();
		sleep_until(now_ns + rnd_scale(MS, 3 * SEC), MyLatch);
	}
	raise_error(ERRCODE_CONNECTION_FAILURE, "the worker has failed");
}

FN(void *, load_external_function, (const char *file, const char *name, bool is_needed, void **handle),
   return lease_main;)
FN(void, before_shmem_exit, (pg_on_exit_callback callback, Datum argument), before_exit = callback;)
FN(void, proc_exit, (int code),
   if (before_exit != NULL) before_exit(code, (Datum) 0); siglongjmp(*worker_ends, 1);)

/* A worker that has failed leaves a transaction open; the next one begins soon. */
void
worker_main(void)
{
	sigjmp_buf	end;

	for (;;)
	{
		load_pristine();
		begin_process();
		scru64_realm = "realm";
		watch_transactions();
		worker_ends = &end;
		if (sigsetjmp(end, 0) == 0)
			scru64_start_lease_worker((Datum) 0);
		abort_transaction();
		nap(rnd_scale(MS, 10 * SEC));
	}
}
