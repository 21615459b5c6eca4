/*-------------------------------------------------------------------------
 *
 * atomics.h
 *		In place of PostgreSQL's: each operation is a function of memory.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ATOMICS_H
#define ATOMICS_H

#define PG_HAVE_ATOMIC_U32_SUPPORT
#define PG_HAVE_ATOMIC_U64_SUPPORT

typedef struct Atomic
{
	volatile uint64 value;
} Atomic, pg_atomic_uint32, pg_atomic_uint64;

extern uint64 atomic_load(volatile Atomic *at);
extern void atomic_store(volatile Atomic *at, uint64 value);
extern bool atomic_replace(volatile Atomic *at, uint64 *expected, uint64 value);
extern uint64 atomic_change(volatile Atomic *at, uint64 value, bool adds);
extern void acquire_fence(void);
extern void release_fence(void);

#define pg_compiler_barrier()	__asm__ __volatile__("" ::: "memory")
#define pg_read_barrier()		acquire_fence()
#define pg_write_barrier()		release_fence()

#define pg_atomic_init_u32(at, to)		((at)->value = (to))
#define pg_atomic_init_u64(at, to)		((at)->value = (to))
#define pg_atomic_read_u32(at)			((uint32) atomic_load(at))
#define pg_atomic_read_u64(at)			atomic_load(at)
#define pg_atomic_write_u32(at, to)		atomic_store(at, (uint32) (to))
#define pg_atomic_write_u64(at, to)		atomic_store(at, to)
#define pg_atomic_exchange_u64(at, to)	atomic_change(at, to, false)
#define pg_atomic_fetch_add_u64(at, n)	atomic_change(at, n, true)
#define pg_atomic_compare_exchange_u64(at, expected, to) atomic_replace(at, expected, to)

#endif							/* ATOMICS_H */
