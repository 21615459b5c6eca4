/*-------------------------------------------------------------------------
 *
 * schedule.c
 *		Chance, time, and the processes of the simulated server.
 *
 * One thread runs all processes as coroutines, one at a time.  A process runs until it sleeps,
 * or until as many scheduling points as chance has given it.  All chance comes from the seed,
 * all time from here: a seed is a history, for ever.
 *
 * All variables of the sources are in one section (core.ld).  A switch to another process
 * saves the section, and loads that of the other process.
 *
 *-------------------------------------------------------------------------
 */

#define MAX_PROCESSES	8
#define STACK_SIZE		(256 * 1024)
#define MAX_POINTS		400000	/* a call with more scheduling points has no end, */
#define LONGEST_CALL	(300 * SEC)	/* nor has one that takes longer: see pass_time() */

extern char __start_core_data[], __stop_core_data[];

#define IMAGE_SIZE		((size_t) (__stop_core_data - __start_core_data))
#define IMAGE(number)	(images + (number) * IMAGE_SIZE)
#define PRISTINE		MAX_PROCESSES	/* the variables before anything was called */

typedef struct Process
{
	int			number;
	bool		is_alive;
	int64		wakes_at;		/* asleep until this time */
	int64		stalled_until;
	const volatile void *awaits;	/* or until another process wakes this */
	int64		call_ns;		/* how long its call takes, at least 1; 0: there is no call */
} Process;

typedef struct Coroutine
{
	ucontext_t	start;
	bool		has_started;
	jmp_buf		goes_on;
	char		stack[STACK_SIZE] pg_attribute_aligned(16);
} Coroutine;

SERVER_LOCAL Process processes[MAX_PROCESSES] = {{0}};
Process    *me = NULL;			/* NULL: the scheduler runs */
int64		now_ns, clock_offset_ns;	/* the monotonic clock, and how far the clock is ahead of it */
uint64		seed;
HISTORY_LOCAL int incarnation = 0;	/* of the server */
bool		is_verbose, is_violated, is_script;
HISTORY_LOCAL bool is_over = false;
const char *crash_reason;		/* NULL: the server runs */
PROCESS_LOCAL int points_of_call = 0;

static Coroutine coroutines[MAX_PROCESSES];
static jmp_buf scheduler;
static char *images;			/* of core_data */
static int	loaded = -1;		/* the process whose image is in core_data */
static int	points_left;
HISTORY_LOCAL static uint64 steps = 0;
static uint64 chance;

/* splitmix64 */
static uint64
rnd64(void)
{
	uint64		z = (chance += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* From 0 to n - 1, n at most 2^32 */
FN(uint32, rnd, (int64 n), return (uint32) ((rnd64() >> 32) * (uint64) n >> 32);)
FN(bool, one_in, (int64 n), return n > 0 && rnd(n) == 0;)

/* From least to most, each power of two as often as the next one */
int64
rnd_scale(int64 least, int64 most)
{
	int			powers = 0;
	int64		from;

	while (least << (powers + 1) <= most)
		powers++;
	from = least << rnd(powers + 1);
	return Min(from + (int64) (rnd64() % (uint64) from), most);
}

/* Print a line of the trace. */
bool
print_line(const char *fmt,...)
{
	va_list		arguments;

	printf("%8" PRIu64 " %12.6f %d: ", steps, (double) now_ns / SEC, me != NULL ? me->number : -1);
	va_start(arguments, fmt);
	vprintf(fmt, arguments);
	va_end(arguments);
	putchar('\n');
	return true;
}

static void
switch_to_scheduler(void)
{
	if (_setjmp(coroutines[me->number].goes_on) == 0)
		_longjmp(scheduler, 1);
}

/* The server does not run on. */
void
crash(const char *reason)
{
	trace("crash: %s", reason);
	crash_reason = reason;
	while (me != NULL)
		switch_to_scheduler();
}

FN(void, end_history, (void), is_over = true; crash("the history is over");)

/* Returns false after the first one. */
bool
begin_violation(void)
{
	if (is_violated)
		return false;
	is_violated = true;
	printf("VIOLATION of seed " UINT64_FORMAT ", incarnation %d: ", seed, incarnation);
	return true;
}

/* Another process may run here. */
void
scheduling_point(void)
{
	if (me == NULL)
		return;
	if (++points_of_call > MAX_POINTS)
		violation("a call has no end");
	if (--points_left <= 0)
		switch_to_scheduler();
}

void
sleep_until(int64 ns, const volatile void *awaited)
{
	me->wakes_at = is_script ? 0 : ns;
	me->awaits = awaited;
	switch_to_scheduler();
}

void
nap(int64 ns)
{
	int64		until = now_ns + ns;

	while (now_ns < until)
		sleep_until(until, NULL);
}

/* Wake who awaits this, and have them see what this process has seen. */
void
wake(const volatile void *awaited)
{
	release_view(awaited);
	for (int i = 0; i < MAX_PROCESSES; i++)
	{
		if (processes[i].awaits == awaited)
			processes[i].wakes_at = 0;
	}
}

/* The variables of the sources as another process finds them */
FN(void, load_pristine, (void), memcpy(__start_core_data, IMAGE(PRISTINE), IMAGE_SIZE);)

void
start_process(int number, void (*main) (void))
{
	Coroutine  *coroutine = &coroutines[number];

	memcpy(IMAGE(number), IMAGE(PRISTINE), IMAGE_SIZE);
	getcontext(&coroutine->start);
	coroutine->start.uc_stack.ss_sp = coroutine->stack;
	coroutine->start.uc_stack.ss_size = STACK_SIZE;
	makecontext(&coroutine->start, main, 0);
	coroutine->has_started = false;
	processes[number] = (Process) {.number = number, .is_alive = true};
	loaded = -1;
}

static void
dispatch(Process *process)
{
	Coroutine  *coroutine = &coroutines[process->number];

	if (loaded != process->number)
	{
		if (loaded >= 0)
			memcpy(IMAGE(loaded), __start_core_data, IMAGE_SIZE);
		loaded = process->number;
		memcpy(__start_core_data, IMAGE(loaded), IMAGE_SIZE);
	}
	process->awaits = NULL;
	process->wakes_at = 0;
	points_left = swarm.is_uneven ? (int) rnd_scale(1, 4 * swarm.burst) : 1 + (int) rnd(2 * swarm.burst);
	me = process;
	if (_setjmp(scheduler) == 0)
	{
		if (coroutine->has_started)
			_longjmp(coroutine->goes_on, 1);
		coroutine->has_started = true;
		setcontext(&coroutine->start);
	}
	me = NULL;
}

/*
 * Time goes on.  All calls end soon, except where a call may wait for a process that is stalled,
 * or again and again for the flush of a process that was faster.
 */
static void
pass_time(int64 ns)
{
	bool		is_slow = swarm.is_slow;

	for (int i = 0; i < MAX_PROCESSES; i++)
		is_slow |= processes[i].is_alive && processes[i].stalled_until > now_ns;
	now_ns += ns;
	for (int i = 0; i < MAX_PROCESSES && !is_slow; i++)
	{
		if (processes[i].call_ns > 0 && (processes[i].call_ns += ns) > LONGEST_CALL)
			violation("a call of process %d takes too long", i);
	}
}

/* Choose a process that is not asleep.  NULL: time has gone on to when one wakes. */
static Process *
choose(void)
{
	Process    *ready[MAX_PROCESSES];
	int			n_ready = 0;
	int64		next = NEVER;

	for (int i = 0; i < MAX_PROCESSES; i++)
	{
		int64		at = Max(processes[i].wakes_at, processes[i].stalled_until);

		if (processes[i].is_alive && at <= now_ns)
			ready[n_ready++] = &processes[i];
		if (processes[i].is_alive)
			next = Min(next, at);
	}
	if (n_ready > 0)
		return ready[rnd(n_ready)];
	if (next == NEVER)
		violation("all processes wait for each other");
	pass_time(next - now_ns);
	return NULL;
}

/* Run until a crash. */
void
run_processes(void)
{
	crash_reason = NULL;
	while (crash_reason == NULL)
	{
		Process    *chosen;

		steps++;
		events();
		chosen = choose();
		if (chosen == NULL)
			continue;
		pass_time(rnd(swarm.step_ns));
		dispatch(chosen);
		if (one_in(swarm.stall_1in))
			chosen->stalled_until = now_ns + rnd_scale(MS, one_in(20) ? 4000 * SEC : 20 * SEC);
	}
}
