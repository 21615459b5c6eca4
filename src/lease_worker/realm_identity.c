/*-------------------------------------------------------------------------
 *
 * realm_identity.c
 *		Which realm the lease is from, and which it may be from.
 *
 * A realm has an ID, which a setting may name; else the one that was met counts, for as
 * long as a lease of it may.  A connection string may lead to another realm at any time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "lease_worker/realm_identity.h"
#include "settings.h"

/* From here on, where the lease is from is what the setting says. */
void
keep_address(Worker *worker)
{
	if (worker->realm != NULL)
		pfree(worker->realm);
	worker->realm = MemoryContextStrdup(TopMemoryContext, scru64_realm);
}

/* Where a lease is from, so that it is not taken for one of another realm. */
static uint64
address_hash(const char *realm)
{
	return hash_bytes_extended((const unsigned char *) realm, (int) strlen(realm), 0);
}

/* Is the lease from where the setting says? */
bool
is_of_address(const HeldLease *held)
{
	return held->address == address_hash(scru64_realm);
}

/*
 * Which realm this server is to have its lease from; empty: any.  When the lease is over,
 * so is what was promised.
 */
static const char *
wanted_realm_id(Worker *worker)
{
	if (*scru64_realm_id != '\0')
		return scru64_realm_id;
	return strcmp(worker->realm, scru64_realm) == 0 && look_around(worker)->left_ms > 0 ?
		worker->held.realm_id : "";
}

/* Which realm is it?  False if it is not one to have a lease from. */
bool
check_realm(Worker *worker, RealmCall *call, char *realm_id)
{
	const char *wanted = wanted_realm_id(worker);

	if (!call_realm_id(call, realm_id))
		return false;
	call->other_realm = *wanted != '\0' && pg_strcasecmp(realm_id, wanted) != 0;
	return !call->other_realm ||
		realm_problem(call, psprintf("this is realm %s, and not %s", realm_id, wanted));
}

/* From here on the lease is from this realm, at the address that is set. */
void
settle_in_realm(Worker *worker, const char *realm_id)
{
	HeldLease  *held = &worker->held;

	if (*scru64_realm_id == '\0' && strcmp(realm_id, held->realm_id) != 0)
		ereport(LOG,
				(errmsg("the realm of this server is %s", realm_id),
				 errhint("Set \"%s\" to it, and no other realm is taken for it.",
						 "scru64.realm_id")));
	strlcpy(held->realm_id, realm_id, sizeof(held->realm_id));
	held->address = address_hash(scru64_realm);
	keep_address(worker);
}
