/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *		What the fuzz targets share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stop with a report that libFuzzer keeps the input of. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, \
					#condition); \
			abort(); \
		} \
	} while (0)

/* A copy in a block of its own, where each access past its end is seen. */
static inline char *
exact_copy(const uint8_t *data, size_t size)
{
	char	   *copy = malloc(size);

	if (size > 0)
	{
		if (copy == NULL)
			abort();
		memcpy(copy, data, size);
	}
	return copy;
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif							/* FUZZ_H */
