/*-------------------------------------------------------------------------
 *
 * state_file.c
 *		The state file: read it, write it.
 *
 * Upper storey.  Knows the format and nothing of who reads or writes when: the
 * callers see to it that nobody else does at the same time.  Text, so that it
 * can be read at 3 a.m.:
 *
 *		scru64 state file, version 1, checksum 5f3a9c01
 *		timeline 1
 *		floor 0w6fmq8zzzzz
 *		0w6fn1vzzzzz/8
 *
 * The checksum, CRC-32C in hexadecimal, is of all that follows the first line.
 * The timeline is the server's when it wrote the file.  A node's line is its ceiling in the form of a node spec: no ID above it was
 * given out.  The floor is an ID of the last tick in which a node that is not
 * listed can have given out any.
 *
 * Invariants:
 *
 *	- The file is replaced as a whole, after it is on disk: whenever the server
 *	  dies, one complete file is there, the old or the new.
 *	- A file that is not exactly of this form is an error, never an empty state:
 *	  IDs that were given out would be given out again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "pg_compat.h"

#include "lib/stringinfo.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "base36.h"
#include "state_file.h"

#define TEMPORARY_NAME		STATE_FILE_NAME ".tmp"

#define STATE_FILE_VERSION	1
#define HEADER_START		"scru64 state file, version "
#define TIMELINE_KEYWORD	"timeline "
#define FLOOR_KEYWORD		"floor "

/* More than any file of ours ever has; what is longer is none. */
#define MAX_FILE_SIZE		(64 * 1024)

static void
damaged(const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("file \"%s\" is damaged", STATE_FILE_NAME),
			 errdetail("%s", reason),
			 errhint("No ID is generated, because it might have been given out before. Restore the file from a backup, or remove it and set \"%s\" to a node that has not been used, or to one that continues after its highest ID.",
					 "scru64.node_spec")));
}

static uint32
checksum(const char *text)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, text, strlen(text));
	FIN_CRC32C(crc);
	return crc;
}

/*
 * Reading
 */

/* The whole file as a string, or NULL if there is none. */
static char *
read_text(void)
{
	char	   *text = palloc(MAX_FILE_SIZE + 1);
	FILE	   *stream = AllocateFile(STATE_FILE_NAME, PG_BINARY_R);
	size_t		len;

	if (stream == NULL && errno == ENOENT)
		return NULL;
	if (stream == NULL)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\" for reading: %m",
						STATE_FILE_NAME)));

	len = fread(text, 1, MAX_FILE_SIZE, stream);
	if (ferror(stream))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", STATE_FILE_NAME)));
	FreeFile(stream);

	text[len] = '\0';
	if (strlen(text) != len || len == MAX_FILE_SIZE)
		damaged("It is not a text file of this kind.");
	return text;
}

/* The first line of a file with this body; palloc'd. */
static char *
format_header(const char *body)
{
	return psprintf(HEADER_START "%d, checksum %08x\n",
					STATE_FILE_VERSION, checksum(body));
}

/* Check the first line, and return what follows it. */
static char *
check_header(char *text)
{
	char	   *body = text + strcspn(text, "\n");
	char	   *header;
	unsigned int version;

	if (*body++ == '\0')
		damaged("It has no complete line.");

	if (sscanf(text, HEADER_START "%u", &version) == 1 &&
		version != STATE_FILE_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("file \"%s\" has version %u, which this version of scru64 cannot read",
						STATE_FILE_NAME, version),
				 errdetail("It reads version %d.", STATE_FILE_VERSION),
				 errhint("Install the version of scru64 that has written the file.")));

	/* to the letter: a reader that is lenient lets damage pass */
	header = format_header(body);
	if (strncmp(text, header, strlen(header)) != 0)
		damaged("Its first line is not that of a state file with these contents.");
	return body;
}

/* Cut off and return the first line of *text, without its end. */
static char *
next_line(char **text)
{
	char	   *line = *text;
	char	   *end = line + strcspn(line, "\n");

	if (*end == '\0')
		damaged("Its last line is not complete.");
	*end = '\0';
	*text = end + 1;
	return line;
}

/* What follows the keyword that a line begins with. */
static const char *
value_of_line(const char *line, const char *keyword)
{
	if (strncmp(line, keyword, strlen(keyword)) != 0)
		damaged("Its second line is not a timeline, or its third is not a floor.");
	return line + strlen(keyword);
}

static uint32
parse_timeline(const char *line)
{
	const char *text = value_of_line(line, TIMELINE_KEYWORD);
	char	   *end;
	unsigned long timeline;

	errno = 0;
	timeline = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || timeline > PG_UINT32_MAX)
		damaged("Its second line is not a timeline.");
	return (uint32) timeline;
}

static uint64
parse_floor(const char *line)
{
	const char *text = value_of_line(line, FLOOR_KEYWORD);
	uint64		id;

	if (!base36_decode(text, strlen(text), &id))
		damaged("Its third line is not a floor.");
	return scru64_get_timestamp(id);
}

/*
 * Read the state file.  False if there is none.  file->nodes is palloc'd.
 * Raises an error if the file cannot be read, or is not right in every detail.
 */
bool
state_file_read(StateFile *file)
{
	char	   *text = read_text();

	if (text == NULL)
		return false;

	text = check_header(text);
	file->timeline = parse_timeline(next_line(&text));
	file->floor = parse_floor(next_line(&text));
	file->num_nodes = 0;
	/* a line has more than two bytes */
	file->nodes = palloc(sizeof(NodeSpec) * (strlen(text) / 2 + 1));
	while (*text != '\0')
	{
		NodeSpec   *node = &file->nodes[file->num_nodes++];

		if (node_spec_parse(next_line(&text), node) != NODE_SPEC_OK || node->node_prev == 0)
			damaged("One of its lines is not the state of a node.");
	}
	return true;
}

/*
 * Writing
 */

static char *
format_body(const StateFile *file)
{
	StringInfoData body;
	char		id[BASE36_DIGITS];
	char		spec[NODE_SPEC_BUFLEN];

	base36_encode(scru64_compose(file->floor, SCRU64_MAX_NODE_CTR), id);
	initStringInfo(&body);
	appendStringInfo(&body, TIMELINE_KEYWORD "%u\n", file->timeline);
	appendStringInfo(&body, FLOOR_KEYWORD "%.*s\n", BASE36_DIGITS, id);
	for (int i = 0; i < file->num_nodes; i++)
	{
		node_spec_format(&file->nodes[i], spec);
		appendStringInfo(&body, "%s\n", spec);
	}
	return body.data;
}

/* Raise an error about the temporary file, and make its room free. */
static void
could_not_write(void)
{
	int			save_errno = errno;

	unlink(TEMPORARY_NAME);
	errno = save_errno;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", TEMPORARY_NAME),
			 errdetail("No ID is generated before the state file \"%s\" is written.",
					   STATE_FILE_NAME)));
}

/*
 * Replace the state file.  When this returns, the new one is on disk; when it
 * raises an error, it may be or not.
 */
void
state_file_write(const StateFile *file)
{
	char	   *body = format_body(file);
	char	   *header = format_header(body);
	FILE	   *stream;
	bool		failed;

	stream = AllocateFile(TEMPORARY_NAME, PG_BINARY_W);
	if (stream == NULL)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", TEMPORARY_NAME),
				 errdetail("No ID is generated before the state file \"%s\" is written.",
						   STATE_FILE_NAME)));

	/* a full disk may show in any of them */
	failed = fputs(header, stream) < 0 || fputs(body, stream) < 0 ||
		fflush(stream) != 0;
	if (FreeFile(stream) != 0 || failed)
		could_not_write();

	/* puts the new file on disk before, and the directory after */
	durable_rename(TEMPORARY_NAME, STATE_FILE_NAME, ERROR);
	pfree(header);
	pfree(body);
}
