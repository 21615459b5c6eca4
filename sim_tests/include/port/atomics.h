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

typedef struct pg_atomic_flag
{
	volatile int value;
} pg_atomic_flag;

typedef struct pg_atomic_uint32
{
	volatile uint32 value;
} pg_atomic_uint32;

typedef struct pg_atomic_uint64
{
	volatile uint64 value pg_attribute_aligned(8);
} pg_atomic_uint64;

extern uint64 atomic_load(volatile void *at, int size);
extern void atomic_store(volatile void *at, uint64 value, int size);
extern bool atomic_replace(volatile void *at, void *expected, uint64 value, int size);
extern void acquire_fence(void);
extern void release_fence(void);

#define pg_compiler_barrier()	__asm__ __volatile__("" ::: "memory")
#define pg_read_barrier()		acquire_fence()
#define pg_write_barrier()		release_fence()

#define DEFINE_ATOMICS(n) \
	static inline void pg_atomic_init_u##n(volatile pg_atomic_uint##n *at, uint##n value) \
	{ at->value = value; } \
	static inline uint##n pg_atomic_read_u##n(volatile pg_atomic_uint##n *at) \
	{ return (uint##n) atomic_load(at, sizeof(*at)); } \
	static inline void pg_atomic_write_u##n(volatile pg_atomic_uint##n *at, uint##n value) \
	{ atomic_store(at, value, sizeof(*at)); } \
	static inline uint##n pg_atomic_exchange_u##n(volatile pg_atomic_uint##n *at, uint##n value) \
	{ \
		uint##n		old = at->value; \
		while (!atomic_replace(at, &old, value, sizeof(*at))) \
			; \
		return old; \
	} \
	static inline bool pg_atomic_compare_exchange_u##n(volatile pg_atomic_uint##n *at, \
													   uint##n *expected, uint##n value) \
	{ return atomic_replace(at, expected, value, sizeof(*at)); } \
	static inline uint##n pg_atomic_fetch_add_u##n(volatile pg_atomic_uint##n *at, int##n value) \
	{ \
		uint##n		old = at->value; \
		while (!atomic_replace(at, &old, old + (uint##n) value, sizeof(*at))) \
			; \
		return old; \
	}

DEFINE_ATOMICS(32)
DEFINE_ATOMICS(64)

#endif							/* ATOMICS_H */
