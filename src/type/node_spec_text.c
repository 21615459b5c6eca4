/*-------------------------------------------------------------------------
 *
 * node_spec_text.c
 *		scru64_parse_node_spec(), and the texts of errors about a node spec such as '42/8', for
 *		settings.c, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "type/node_spec_text.h"

PG_FUNCTION_INFO_V1(scru64_parse_node_spec);

const char *const node_spec_text_details[] = {
	[NODE_SPEC_BAD_SYNTAX] = "A node spec is node_id/node_id_size, where node_id is decimal, hexadecimal after \"0x\", or a previous ID of 12 digits.",
	[NODE_SPEC_BAD_SIZE] = "The node_id_size, after the slash, must be between 1 and 23.",
	[NODE_SPEC_BAD_NODE_ID] = "The node_id, before the slash, does not fit in as many bits as the node_id_size, after it, says."
};

/*
 * scru64_parse_node_spec(text) -> node_id, node_id_size, node_prev
 *
 * The parts of a node spec; node_prev is null if it has none.  22023 if the text is no
 * node spec.
 */
Datum
scru64_parse_node_spec(PG_FUNCTION_ARGS)
{
	char	   *spec_text = text_to_cstring(PG_GETARG_TEXT_PP(0));
	NodeSpec	spec;
	NodeSpecStatus status = node_spec_parse(spec_text, &spec);
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {false};

	if (status != NODE_SPEC_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid node spec \"%s\"", spec_text),
				 errdetail("%s", node_spec_text_details[status]),
				 errhint(NODE_SPEC_EXAMPLES)));
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[0] = Int32GetDatum((int32) spec.node.node_id);
	values[1] = Int32GetDatum((int32) spec.node.node_id_size);
	values[2] = Int64GetDatum((int64) spec.node_prev);
	nulls[2] = spec.node_prev == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
