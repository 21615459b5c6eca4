/*-------------------------------------------------------------------------
 *
 * session.c
 *		The session's node.
 *
 * attach.c fills it in; generate.c uses it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "generate/session.h"

SessionNode session_node;

/* Forget the slot: the next call looks for it again. */
void
detach_node(void)
{
	session_node.slot = NULL;
}
