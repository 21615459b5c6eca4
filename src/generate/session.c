/*-------------------------------------------------------------------------
 *
 * session.c
 *		What a session keeps of its node.
 *
 * attach.c fills it in, and generate.c goes by it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "generate/session.h"

SessionNode session_node;

/* Have the next call look for the session's node: the setting has changed. */
void
detach_node(void)
{
	session_node.slot = NULL;
}
