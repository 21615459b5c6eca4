/*-------------------------------------------------------------------------
 *
 * spin.h
 *		In place of PostgreSQL's: a spinlock is a function of server.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SPIN_H
#define SPIN_H

typedef uint64 slock_t;

#define SpinLockInit(lock)		(*(lock) = 0)

extern void SpinLockAcquire(volatile slock_t *lock);
extern void SpinLockRelease(volatile slock_t *lock);

#endif							/* SPIN_H */
