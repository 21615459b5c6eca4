/*-------------------------------------------------------------------------
 *
 * harness.h
 *		Just enough to write unit tests with.
 *
 * A test program includes this once, calls RUN(function) for each test case
 * and returns harness_finish().  It prints TAP.  A test case passes if each
 * of its checks does; a failed check prints where it is, what it says and the
 * values, and the test case goes on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Failures of a test case that are printed; the rest are only counted. */
#define HARNESS_MAX_PRINTED 5

/* What a function is to leave alone, because it sets nothing. */
#define UNTOUCHED	UINT64_C(0xa5a5a5a5a5a5a5a5)

/* Ticks, and IDs in a tick: the tests do not take them from the code under test. */
#define TODAY			UINT64_C(6900000000)	/* in the year 2025 */
#define MAX_TIMESTAMP	UINT64_C(282429536480)	/* reserved, as 0 is */
#define LAST_TICK		(MAX_TIMESTAMP - 1)
#define ALLOWANCE		UINT64_C(39)	/* 10 s */
#define IDS_PER_TICK	UINT64_C(16777216)	/* of all nodes together */

#define LENGTH_OF(array)	(sizeof(array) / sizeof((array)[0]))

static struct
{
	unsigned int cases;
	unsigned int failed_cases;
	uint64_t	checks;			/* of the test case that runs */
	uint64_t	failures;		/* likewise */
	const char *note;			/* what is being checked, or NULL */
}			harness;

#define RUN(test)	harness_run(#test, test)

/* Each yields whether it passed, so that more can be told if it did not. */
#define CHECK(condition) \
	harness_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_UINT(actual, op, expected) \
	harness_check_uint((actual) op (expected), __FILE__, __LINE__, \
					   #actual " " #op " " #expected, (actual), (expected))
/* of numbers that are not negative */
#define CHECK_INT(actual, op, expected) \
	CHECK_UINT((uint64_t) (actual), op, (uint64_t) (expected))
#define CHECK_TEXT(actual, expected, len) \
	harness_check_text(__FILE__, __LINE__, #actual " is " #expected, \
					   (actual), (expected), (len))

/* A line of output that is no result. */
__attribute__((format(printf, 1, 2)))
static inline void
harness_say(const char *format,...)
{
	va_list		args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* Print bytes with a label. */
static inline void
harness_say_text(const char *label, const char *text, size_t len)
{
	printf("#     %s \"", label);
	for (size_t i = 0; i < len; i++)
	{
		unsigned char byte = (unsigned char) text[i];

		if (byte >= ' ' && byte <= '~')
			putchar(byte);
		else
			printf("\\x%02x", (unsigned int) byte);
	}
	printf("\"\n");
}

/* Count a check that failed; true if there is room to print more about it. */
static inline bool
harness_fail(const char *file, int line, const char *expression)
{
	if (harness.failures++ >= HARNESS_MAX_PRINTED)
		return false;
	harness_say("%s:%d: failed: %s", file, line, expression);
	if (harness.note != NULL)
		harness_say_text("with", harness.note, strlen(harness.note));
	return true;
}

/* More about a failure, if the failure itself was printed. */
#define TELL(...) \
	do { \
		if (harness.failures <= HARNESS_MAX_PRINTED) \
			harness_say("    " __VA_ARGS__); \
	} while (0)

static inline bool
harness_check(bool passed, const char *file, int line, const char *expression)
{
	harness.checks++;
	if (!passed)
		harness_fail(file, line, expression);
	return passed;
}

static inline bool
harness_check_uint(bool passed, const char *file, int line,
				   const char *expression, uint64_t actual, uint64_t expected)
{
	harness.checks++;
	if (!passed && harness_fail(file, line, expression))
		harness_say("    values: %" PRIu64 " (0x%" PRIx64 "), %" PRIu64
					" (0x%" PRIx64 ")", actual, actual, expected, expected);
	return passed;
}

static inline bool
harness_check_text(const char *file, int line, const char *expression,
				   const char *actual, const char *expected, size_t len)
{
	bool		passed = memcmp(actual, expected, len) == 0;

	harness.checks++;
	if (!passed && harness_fail(file, line, expression))
	{
		harness_say_text("is       ", actual, len);
		harness_say_text("should be", expected, len);
	}
	return passed;
}

static inline void
harness_run(const char *name, void (*test) (void))
{
	bool		passed;

	/* a crash must not take along what was printed before it */
	if (harness.cases == 0)
		setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

	harness.checks = 0;
	harness.failures = 0;
	harness.note = NULL;
	test();

	/* a test case that checked nothing has shown nothing */
	passed = harness.failures == 0 && harness.checks > 0;
	harness.cases++;
	if (!passed)
	{
		harness.failed_cases++;
		harness_say("%" PRIu64 " of %" PRIu64 " checks failed",
					harness.failures, harness.checks);
	}
	printf("%s %u - %s (%" PRIu64 " checks)\n", passed ? "ok" : "not ok",
		   harness.cases, name, harness.checks);
}

/* Print the plan; returns the exit status. */
static inline int
harness_finish(void)
{
	printf("1..%u\n", harness.cases);
	return harness.failed_cases == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * Memory of exactly size bytes: the last bytes of their block, so that the
 * address sanitizer sees every access past them.  They start lead bytes into
 * the block, which is how to get at any alignment; lead is at least 1, so that
 * there is a block even where size is 0.
 */
static inline char *
exact_alloc(size_t size, size_t lead)
{
	char	   *block = malloc(lead + size);

	if (block == NULL)
		abort();
	return block + lead;
}

static inline void
exact_free(char *memory, size_t lead)
{
	free(memory - lead);
}

/* Random numbers, the same in every run: a failure comes back. */
typedef struct Random
{
	uint64_t	state;			/* never 0 */
} Random;

/* 64 random bits: xorshift, with a multiplication at the end. */
static inline uint64_t
random_bits(Random *random)
{
	uint64_t	x = random->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random->state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

static inline Random
random_make(uint64_t seed)
{
	Random		random = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};

	/* let a small seed reach all bits */
	for (int i = 0; i < 20; i++)
		(void) random_bits(&random);
	return random;
}

/* A number below bound; that it is not quite uniform does not matter here. */
static inline uint64_t
random_below(Random *random, uint64_t bound)
{
	return (random_bits(random) >> 1) % bound;
}

/* A number of 0 to max_bits bits, every length as often. */
static inline uint64_t
random_length(Random *random, unsigned int max_bits)
{
	unsigned int bits = (unsigned int) random_below(random, max_bits + 1);

	return bits == 0 ? 0 : random_bits(random) >> (64 - bits);
}

#endif							/* HARNESS_H */
