/*-------------------------------------------------------------------------
 *
 * node_spec_text.h
 *		The texts of errors about a node spec such as '42/8': what is wrong, and examples.
 *
 *-------------------------------------------------------------------------
 */
#ifndef NODE_SPEC_TEXT_H
#define NODE_SPEC_TEXT_H

#include "pure/node_spec.h"

/* For a HINT */
#define NODE_SPEC_EXAMPLES \
	"Examples: 42/8, 0xb00/12, 0u2r85hm2pt3/16."

/* For a DETAIL, by what node_spec_parse() returns */
extern const char *const node_spec_text_details[];

#endif							/* NODE_SPEC_TEXT_H */
