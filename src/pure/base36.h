/*-------------------------------------------------------------------------
 *
 * base36.h
 *		IDs as text: twelve Base36 digits.
 *
 * Knows nothing of PostgreSQL, allocates nothing, keeps no state.  Specification
 * v1.0.0, "Textual representation": twelve digits 0-9a-z, written in lower case, read in
 * either case.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BASE36_H
#define BASE36_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BASE36_DIGITS	12		/* digits of an ID's text, without a NUL */

/*
 * Read len bytes of text as an ID.  False, with *id untouched, unless they are
 * exactly twelve digits.  Any twelve digits are a valid ID.
 */
extern bool base36_decode(const char *text, size_t len, uint64_t *id);

/* Write the twelve digits of id, 0 .. SCRU64_MAX_ID.  Adds no NUL. */
extern void base36_encode(uint64_t id, char *text);

#endif							/* BASE36_H */
