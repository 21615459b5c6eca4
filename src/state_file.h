/*-------------------------------------------------------------------------
 *
 * state_file.h
 *		The state file: what a restart has to know of every node.
 *
 * Upper storey.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STATE_FILE_H
#define STATE_FILE_H

#include "node_spec.h"

/* In the data directory, which is every backend's working directory. */
#define STATE_FILE_NAME		"scru64.state"

typedef struct StateFile
{
	uint32		timeline;		/* of the server when it wrote the file */
	uint64		floor;			/* in ticks: for the nodes that are not listed */
	int			num_nodes;
	NodeSpec   *nodes;			/* node_prev is the node's ceiling */
} StateFile;

extern bool state_file_read(StateFile *file);
extern void state_file_write(const StateFile *file);

#endif							/* STATE_FILE_H */
