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

extern void spin_acquire(volatile slock_t *lock);
extern void spin_release(volatile slock_t *lock);

#define SpinLockInit(lock)		(*(lock) = 0)
#define SpinLockAcquire(lock)	spin_acquire(lock)
#define SpinLockRelease(lock)	spin_release(lock)

#endif							/* SPIN_H */
