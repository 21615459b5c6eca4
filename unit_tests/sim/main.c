/*-------------------------------------------------------------------------
 *
 * main.c
 *		Histories of a server, one for each seed: see README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include "schedule.c"
#include "memory.c"
#include "check.c"
#include "server.c"
#include "storage.c"
#include "workload.c"
#include "worker.c"
#include "lockset.c"

#define MAX_INCARNATIONS 12

static int	n_crashes, n_forks;
static uint64 n_ids, steps_left;

/* Of the nodes, two overlap, and none fills a tick. */
static const Swarm script_swarm = {
	.sessions = 1, .watermarks = 20, .burst = PG_INT32_MAX / 4, .step_ns = 1, .first_xid = FIRST_XID,
	.jump_1in = 3, .max_jump = 5 * SEC, .crash_1in = 15, .set_1in = 15, .lose_page_1in = 3,
	.prepare_1in = 16, .finish_1in = 6, .no_row_1in = 5,
	.n_nodes = 3,
	.nodes = {{.node_id = 42, .node_id_size = 8}, {.node_id = 43, .node_id_size = 8},
		{.node_id = 10, .node_id_size = 6}}
};

/* Each history has a mix of its own: what is rare in one is frequent in another. */
static void
draw_swarm(void)
{
	if (is_script)
	{
		swarm = script_swarm;
		steps_left = 100;
		return;
	}
	swarm = (Swarm) {0};
	swarm.sessions = 1 + rnd(6);
	swarm.burst = PICK(1, 2, 4, 10, 30, 100, 300);
	swarm.is_uneven = one_in(2);
	swarm.stale_1in = PICK(2, 3, 6);
	swarm.step_ns = rnd_scale(1000, 30 * MS);
	swarm.flush_ms = PICK(0, 1, 10, 100, 1000, 3000, 6000);
	swarm.jump_1in = PICK(0, 0, 0, 300, 1000, 5000);
	swarm.max_jump = SEC * PICK(1, 10, 10, 3600, 100000);
	swarm.crash_1in = PICK(0, 300, 1000, 3000, 10000);
	swarm.cancel_1in = PICK(0, 0, 100, 1000);
	swarm.set_1in = PICK(0, 0, 0, 20, 200);
	swarm.allowance_1in = PICK(0, 0, 500, 3000);
	swarm.standby_1in = PICK(1, 5, 20, 100);
	swarm.stall_1in = PICK(0, 0, 20, 200, 2000);
	swarm.fail_1in = PICK(0, 0, 0, 30, 300);
	swarm.watermarks = PICK(0, 10, 30, 60);
	swarm.prepare_1in = 16;
	swarm.finish_1in = 6;
	swarm.no_row_1in = PICK(1, 3, 10, 10);
	swarm.has_standby = one_in(3);
	swarm.has_worker = one_in(4);
	MyBgworkerEntry->bgw_restart_time = one_in(3) ? 5 : BGW_NEVER_RESTART;	/* 5: preloaded */
	swarm.lease_ticks = PICK(8, 40, 400, 2000);
	swarm.realm_nodes = PICK(1, 1, 4);
	if (one_in(8))
	{
		swarm.is_corrected = true;
		swarm.jump_1in = 200;
		swarm.max_jump = 100000 * SEC;
		swarm.set_1in = 20;
	}
	if (one_in(6))
	{
		/* prepared while others ask for a watermark: short flushes, and bursts of any length */
		swarm.prepare_1in = 2;
		swarm.finish_1in = 2;
		swarm.watermarks = 40;
		swarm.flush_ms = 0;
		swarm.burst = PICK(10, 30, 100);
		swarm.is_uneven = true;
	}
	swarm.serials_1in = one_in(10) ? 20 : 0;
	swarm.n_nodes = 1 + rnd(one_in(2) ? MAX_NODES : 4);
	swarm.first_xid = one_in(3) ? ((uint64) 1 << 32) * (1 + rnd(2)) - 4 - rnd(80) : FIRST_XID;
	if (one_in(12))
	{
		swarm.is_slow = true;
		swarm.sessions = 1 + rnd(3);
		swarm.jump_1in = swarm.set_1in = swarm.allowance_1in = swarm.stall_1in = 0;
		swarm.has_worker = swarm.has_standby = false;
	}
	swarm.signal_1in = swarm.has_worker ? PICK(20, 100, 1000) : 0;
	swarm.is_calm = swarm.jump_1in == 0 && swarm.set_1in == 0 && swarm.allowance_1in == 0;
	swarm.lose_page_1in = swarm.is_calm && !swarm.has_worker && one_in(3) ? 3 : 0;
	swarm.lose_1in = swarm.set_1in == 0 ? PICK(0, 0, 500) : 0;
	for (int i = 0; i < MAX_NODES; i++)
	{
		uint32		size = 20 + rnd(4);

		/* some overlap */
		swarm.nodes[i].node_id_size = (uint8) size;
		swarm.nodes[i].node_id = ((uint32) (i + 1) << (size - 20 + rnd(2))) & (((uint32) 1 << size) - 1);
	}
	if (swarm.has_worker && swarm.realm_nodes > 1 && one_in(2))
	{
		swarm.realm_nodes = 2;
		swarm.n_nodes = 1 + rnd(2);
		swarm.nodes[0] = realm_node(0);
		swarm.configured_key = node_key(swarm.nodes[0]);
	}
	max_prepared_xacts = one_in(3) ? 0 : MAX_PREPARED;
	steps_left = (uint64) PICK(2000, 10000, 30000);
}

static void
move_clock(void)
{
	int64		by = rnd_scale(MS, swarm.max_jump);

	clock_offset_ns = one_in(4) ? START_CLOCK : clock_offset_ns + (one_in(2) ? by : -by);
	clock_offset_ns = Max(clock_offset_ns, -now_ns / 2);
	script("clock " INT64_FORMAT "\n", (now_ns + clock_offset_ns) / MS);
	trace("the clock is %.3f s off", (double) (clock_offset_ns - START_CLOCK) / SEC);
}

/* What happens around the processes, before each step */
void
events(void)
{
	if (incarnation == 0)
		return;
	if (--steps_left == 0)
		end_history();
	storage_events();
	if (one_in(swarm.cancel_1in))
		cancel(&processes[rnd(swarm.sessions)]);
	if (one_in(swarm.signal_1in))
		signal_worker();
	if (one_in(swarm.allowance_1in))
		server_allowance = (int) PICK(0, 200, 256, 511, 512, 1000, 2000, 10000, 10000, 60000);
	if (one_in(swarm.jump_1in))
		move_clock();
	if (one_in(swarm.crash_1in))
		crash("kill -9");
}

static void
next_incarnation(void)
{
	bool		forks = one_in(3);
	bool		is_restore = forks && !one_in(2);

	n_crashes++;
	n_forks += forks;
	recover(forks, is_restore && !is_script);
}

static void
run_history(uint64 this_seed)
{
	CLEAR(history_data);
	CLEAR(server_data);
	seed = this_seed;
	chance = seed * UINT64CONST(0xD1342543DE82EF95);
	now_ns = 1000 * SEC;
	clock_offset_ns = START_CLOCK;
	swarm = (Swarm) {.burst = 1, .step_ns = 1, .first_xid = FIRST_XID};
	start_process(0, create_main);
	run_processes();
	draw_swarm();
	recover(false, false);
	while (!is_over && incarnation++ < MAX_INCARNATIONS)
	{
		begin_incarnation();
		start_workload();
		run_processes();
		end_incarnation();
		if (!is_violated)
			next_incarnation();
	}
	n_ids += (uint64) n_issued;
}

int
main(int argc, char **argv)
{
	uint64		first;
	uint64		histories;
	time_t		end = 0;
	int			option;
	uint64		n = 0;

	while ((option = getopt(argc, argv, "wvst:")) != -1)
	{
		is_weak |= option == 'w';
		is_verbose |= option == 'v';
		is_script |= option == 's';
		if (option == 't')
			end = time(NULL) + atoi(optarg);
		if (option == '?')
		{
			fputs("Usage: sim [-w] [-v] [-s] [-t SECONDS] [SEED [HISTORIES]]: see README.md\n", stderr);
			exit(2);
		}
	}
	first = optind < argc ? strtoull(argv[optind], NULL, 10) : 1;
	histories = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	images = malloc((MAX_PROCESSES + 1) * IMAGE_SIZE);
	memcpy(IMAGE(PRISTINE), __start_core_data, IMAGE_SIZE);
	while (!is_violated && (end != 0 ? time(NULL) < end : n < histories))
		run_history(first + n++);
	if (!is_script)
		printf("%s: %s memory, " UINT64_FORMAT " histories from seed " UINT64_FORMAT " on, " UINT64_FORMAT
			   " IDs, %d crashes, %d of them failovers or restores\n",
			   is_violated ? "not ok" : "ok", is_weak ? "weak" : "strong", n, first,
			   n_ids, n_crashes, n_forks);
	return is_violated;
}
