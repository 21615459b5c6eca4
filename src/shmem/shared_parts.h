/*-------------------------------------------------------------------------
 *
 * shared_parts.h
 *		The shared memory of this library: one piece, with a part for each file that keeps
 *		something there.
 *
 * Such a file (slots.c, ceiling.c and others) alone defines its part, initializes it, and says
 * what guards it.  Here parts are only put together, and attached.  Without preloading, 15 and 16
 * take the piece from the 100 kB that PostgreSQL has to spare, later versions have it made.  It is
 * mixed if a session has loaded another version of this library since: then there is no watermark.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SHARED_PARTS_H
#define SHARED_PARTS_H

/*
 * The version of the layout, and of all that the lease worker's library calls and reads.
 * Libraries of different versions have different memory, and lease workers in different files.
 * scripts/check compares the digest of the structs: bc47aa5282a6.
 */
#define SHARED_MEMORY_VERSION "1"

/* A part.  Its owner names it in module.c. */
typedef struct SharedPart
{
	Size		size;
	Size		(*more) (void);	/* on top of size, the same in all processes; or NULL */
	void		(*init) (void *part, int tranche_id);	/* of atomics, locks and all that is not 0; or NULL */
	void	  **part;			/* where this process has attached the part; NULL: not yet */
} SharedPart;

extern void shared_parts_define(const SharedPart *const *parts, int n_parts, bool reserved);
extern bool shared_parts_may_grow(void);
extern void shared_parts_request(void);
extern void shared_parts_attach(void);
extern void shared_parts_attach_anew(void);
extern bool shared_parts_are_mixed(void);

#endif							/* SHARED_PARTS_H */
