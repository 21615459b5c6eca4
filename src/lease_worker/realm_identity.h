/*-------------------------------------------------------------------------
 *
 * realm_identity.h
 *		Which realm the lease is from, and which it may be from.
 *
 *-------------------------------------------------------------------------
 */
#ifndef REALM_IDENTITY_H
#define REALM_IDENTITY_H

#include "lease_worker/worker.h"

extern void keep_address(Worker *worker);
extern bool is_of_address(const HeldLease *held);
extern bool check_realm(Worker *worker, RealmCall *call, char *realm_id);
extern void settle_in_realm(Worker *worker, const char *realm_id);

#endif							/* REALM_IDENTITY_H */
