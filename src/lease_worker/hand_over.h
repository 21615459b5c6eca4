/*-------------------------------------------------------------------------
 *
 * hand_over.h
 *		Another lease while the sessions have one: they go on with it, in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HAND_OVER_H
#define HAND_OVER_H

#include "lease_worker/worker.h"

extern void change_size(Worker *worker, RealmCall *call, int wanted);
extern bool replace_lease(Worker *worker, RealmCall *call);

#endif							/* HAND_OVER_H */
