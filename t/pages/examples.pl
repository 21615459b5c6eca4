# The examples of every page run, pasted in order, and print what the page says; and the
# reference, of two pages, has one for every object of the extension that users name.

use strict;
use warnings;
use FindBin;
use Scru64Examples;
use Scru64Test;

my $top = "$FindBin::RealBin/../..";
my @reference = map { "$top/doc/$_.md" } qw(scru64 troubleshooting);

# A server as PostgreSQL comes, but for what examples print, which must not depend on
# how the machine is set up.
sub fresh_server
{
	my ($name) = @_;
	my $node = new_node($name, allows_streaming => 1, extra => [ '--locale=C', '--encoding=UTF8' ]);

	$node->append_conf(
		'postgresql.conf', qq(
TimeZone = 'UTC'
DateStyle = 'ISO, YMD'
IntervalStyle = 'postgres'
max_parallel_workers_per_gather = 0
));
	$node->start;
	return $node;
}

sub standby_of
{
	my ($primary) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($primary->name . '_standby');

	$primary->backup('for_standby');
	$standby->init_from_backup($primary, 'for_standby', has_streaming => 1);
	$standby->start;
	return $standby;
}

# The server of that name of a page; it is made when it is first needed.
sub server_of
{
	my ($page, $name) = @_;
	my $servers = $page->{servers} //= {};

	$servers->{$name} //= $name eq 'standby' ? standby_of($servers->{main}) : fresh_server("$page->{id}_$name");
	$servers->{main}->wait_for_catchup($servers->{standby}->name) if $name eq 'standby';
	return $servers->{$name};
}

# What a page calls a host, or a list of hosts: the first that it has as a server, or the
# page's own.
sub host_and_port
{
	my ($page, $hosts, $format) = @_;
	my ($name) = grep { $page->{named}{$_} } split /,/, $hosts;
	my $node = server_of($page, $name // 'main');

	return sprintf($format, $node->host, $node->port);
}

sub with_addresses
{
	my ($page, $text) = @_;

	$text =~ s/\bhost=([a-z][\w,]*|\/var\/run\/postgresql)( port=\d+)?/host_and_port($page, $1, 'host=%s port=%s')/ge;
	$text =~ s/\bhost '(\w+)'/host_and_port($page, $1, "host '%s', port '%s'")/ge;
	# a libpq without SSL refuses these
	$text =~ s/ sslmode=[^\s']+(?:'\s+')? sslrootcert=[^\s']+//g
	  if $text =~ / sslmode=/ && server_of($page, 'main')->safe_psql('postgres', 'SHOW ssl_library') eq '';
	return $text;
}

sub check
{
	my ($page, $example, $result) = @_;
	my $sql = $example->{sql} =~ s/\s+/ /gr;
	my $name = "$page->{name}:$example->{line}: " . substr($sql, 0, 60);

	if (defined $example->{expected})
	{
		my ($expected, $got) = same_shape($example->{expected}, $result->{all});

		is($got, $expected, $name) or diag("what it printed:\n", $result->{all} =~ s/^/--> /gmr);
	}
	else
	{
		unlike($result->{messages}, qr/^(ERROR|FATAL|PANIC):|^invalid command|^\\\w+: error|: error: /m, $name);
	}
	return;
}

# What stands for the reader's own program, and for the checkout
sub make_app
{
	my $dir = PostgreSQL::Test::Utils::tempdir();

	open(my $app, '>', "$dir/app") or die "could not write $dir/app: $!";
	print $app "#!/bin/sh\n: \"\${SCRU64_NODE_SPEC:?}\"\n";
	close $app;
	chmod(0755, "$dir/app");
	foreach (qw(examples plain))
	{
		symlink("$top/$_", "$dir/$_") or die "could not link $dir/$_: $!";
	}
	return $dir;
}

sub run_shell
{
	my ($page, $block) = @_;
	my $node = server_of($page, $page->{at});

	local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
	local $ENV{PATH} = $node->config_data('--bindir') . ":$ENV{PATH}";
	is( system('bash', '-e', '-c', 'cd "$1" && eval "$2"', '-', make_app(), with_addresses($page, $block->{text})),
		0, "$page->{name}:$block->{line}: a block for a shell");
	return;
}

# Run the examples of a page that are to be run in one session.
sub run_session
{
	my ($page) = @_;
	my @examples = splice @{ $page->{pending} };

	return if !@examples;
	my @results = results_of(server_of($page, $page->{at}), 'postgres', @examples);
	check($page, $examples[$_], $results[$_]) for 0 .. $#examples;
	return;
}

# Run all examples of a page.  What to run after one, "then" says.
sub run_page
{
	my ($file, $page, $then) = @_;
	my @blocks = grep { $_->{mark} !~ /^recipe/ } blocks_of($file);

	$page->{name} = $file =~ s/^\Q$top\E\///r;
	$page->{id} //= lc($page->{name} =~ s/\W+/_/gr);
	$page->{at} = 'main';
	$page->{named}{$_} = 1 foreach (map { $_->{mark} =~ /^at (\w+)/ } @blocks);
	foreach my $block (@blocks)
	{
		if ($block->{language} eq 'sql')
		{
			my ($at) = $block->{mark} =~ /^at (\w+)/;

			if (($at //= 'main') ne $page->{at})
			{
				run_session($page);
				$page->{at} = $at;
			}
			server_of($page, $at);
			foreach my $example (examples_of($block))
			{
				$example->{sql} = with_addresses($page, $example->{sql});
				$example->{then} = $then->($example->{sql}) if $then;
				# people are slower than a reload is
				$example->{then} .= 'SELECT pg_sleep(0.3);' if $example->{sql} =~ /pg_reload_conf/;
				push @{ $page->{pending} }, $example;
			}
		}
		elsif ($block->{language} eq 'restart' || $block->{mark} eq 'run')
		{
			run_session($page);
			if ($block->{mark} eq 'run')
			{
				run_shell($page, $block);
			}
			else
			{
				server_of($page, $page->{at})->restart;
			}
		}
	}
	run_session($page);
	return;
}

#
# All pages but the reference
#
foreach my $file ("$top/README.md", sort glob "$top/doc/*.md")
{
	next if grep { $_ eq $file } @reference;

	my %page;
	run_page($file, \%page);
	# a server that leases its node ends before the one with its realm
	$_->stop('fast') foreach (map { $page{servers}{$_} } sort { ($a =~ /^(main|r1)$/) <=> ($b =~ /^(main|r1)$/) } keys %{ $page{servers} });
}

#
# The reference: which objects does an example use?
#
# What a query uses, a view of that query depends on.  Casts are not among the
# dependencies: a statement uses one if without it it cannot be planned.  What an
# index uses is read from the indexes that there are after each example.
#
my $db = 'postgres';
my $seen = q(
CREATE SCHEMA seen;
CREATE TABLE seen.object (catalog oid, objid oid, PRIMARY KEY (catalog, objid));

CREATE FUNCTION seen.note(example text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c record;
BEGIN
	INSERT INTO seen.object
		SELECT 'pg_opclass'::regclass, unnest(indclass::oid[]) FROM pg_index
		ON CONFLICT DO NOTHING;
	BEGIN
		EXECUTE 'EXPLAIN ' || example;
	EXCEPTION WHEN OTHERS THEN
		RETURN;
	END;
	BEGIN
		EXECUTE 'CREATE TEMP VIEW example AS SELECT FROM (' || example || ') AS v';
		INSERT INTO seen.object
			SELECT d.refclassid, d.refobjid
			FROM pg_depend AS d JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
			WHERE r.ev_class = 'pg_temp.example'::regclass
			ON CONFLICT DO NOTHING;
		DROP VIEW pg_temp.example;
	EXCEPTION WHEN syntax_error THEN
		-- not a query
	END;
	FOR c IN
		SELECT p.oid, format('CAST (%s AS %s)', castsource::regtype, casttarget::regtype) AS name
		FROM pg_cast AS p
		JOIN pg_depend AS d ON d.classid = 'pg_cast'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		WHERE NOT EXISTS (SELECT FROM seen.object AS s WHERE s.objid = p.oid AND s.catalog = 'pg_cast'::regclass)
	LOOP
		BEGIN
			EXECUTE 'ALTER EXTENSION scru64 DROP ' || c.name;
			EXECUTE 'DROP ' || c.name;
			BEGIN
				EXECUTE 'EXPLAIN ' || example;
			EXCEPTION WHEN cannot_coerce OR datatype_mismatch THEN
				RAISE SQLSTATE 'SEEN1';
			END;
			RAISE SQLSTATE 'SEEN0';
		EXCEPTION
			-- both undo the DROP
			WHEN SQLSTATE 'SEEN1' THEN
				INSERT INTO seen.object VALUES ('pg_cast'::regclass, c.oid);
			WHEN SQLSTATE 'SEEN0' THEN
				NULL;
		END;
	END LOOP;
END
$$;
);

# What an example uses is noted after it, of each statement with the semicolon at the end of a line.
sub noting
{
	my ($sql) = @_;

	$sql =~ s/^\s*--.*\n//gm;
	return join("\n", map { "SELECT seen.note(\$example\$$_\$example\$);" } $sql =~ /(.+?);\s*$/gms);
}

my @nodes;
foreach my $file (@reference)
{
	my $name = 'reference' . (@nodes + 1);
	my $server = fresh_server($name);

	$server->safe_psql($db, $seen);
	run_page($file, { id => $name, servers => { main => $server } }, \&noting);
	push @nodes, $server;
}

#
# The reference is complete
#
my $node = $nodes[0];
my $text = join("\n", map { slurp_file($_) } @reference);

# A query that returns the cells that a row of some table of the reference has to begin
# with, or what is before the colon in an item of a list, if it has one.  Before and after
# the last one, in its cell, there may be what matches $others.
sub check_rows
{
	my ($what, $query, $others) = @_;
	my @objects = split /\n/, $node->safe_psql($db, $query);
	my @missing;

	$others //= '';
	foreach my $object (@objects)
	{
		my @cells = map { quotemeta } split / \| /, $object =~ s/timestamp with time zone/timestamptz/gr, -1;
		my $last = pop @cells;
		my $pattern = join(' *\| *', @cells, "$others$last$others");

		push @missing, $object if $text =~ s/\n  (?=\S)/ /gr !~ /^(?:\| *$pattern *\||- $pattern(?::|$))/m;
	}
	cmp_ok(scalar(@objects), '>', 0, "there are $what");
	is(join("\n", @missing), '', "$what: each has its row in the reference");
	return;
}

# A condition for objects: each is to be used in an example.
sub check_seen
{
	my ($what, $query) = @_;
	my %missing;

	foreach my $server (@nodes)
	{
		$missing{$_}++ foreach (
			split /\n/, $server->safe_psql($db, qq(
SELECT pg_describe_object(m.classid, m.objid, 0)
FROM pg_depend AS m
JOIN pg_extension AS e ON e.oid = m.refobjid AND e.extname = 'scru64'
WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e' AND $query
	AND NOT EXISTS (SELECT FROM seen.object AS s WHERE s.catalog = m.classid AND s.objid = m.objid))));
	}
	is(join("\n", grep { $missing{$_} == @nodes } sort keys %missing), '', "$what: each is used in an example");
	return;
}

my $member = q(JOIN pg_depend AS m ON m.deptype = 'e'
	AND m.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'scru64'));

# Functions that nobody has to name: those that the type, operators, operator classes and
# aggregates are made of, those of casts, such as scru64_from_bigint(bigint), the one that
# scru64_transactions() reads, and those that SQL cannot call.
my $is_called = q(
	NOT EXISTS (
		SELECT FROM pg_depend AS d LEFT JOIN pg_proc AS a ON d.classid = 'pg_proc'::regclass AND a.oid = d.objid
		WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
			AND (d.classid IN ('pg_type'::regclass, 'pg_operator'::regclass, 'pg_amproc'::regclass)
				OR a.prokind = 'a' OR a.proname = 'scru64_transactions'))
	AND NOT EXISTS (
		SELECT FROM pg_cast
		WHERE castfunc = p.oid
			AND p.proname IN (format('scru64_from_%s', castsource::regtype), format('scru64_to_%s', casttarget::regtype)))
	AND 'internal'::regtype <> ALL (p.proargtypes::oid[]));

check_rows(
	'functions', qq(
SELECT format('`%s(%s)` (%s%s, %s)', p.proname,
	(SELECT string_agg(concat_ws(' ', nullif(proargnames[n], ''), format_type(t, NULL)), ', ' ORDER BY n)
	 FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n)),
	CASE WHEN proretset THEN 'setof ' END, format_type(prorettype, NULL),
	CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END)
FROM pg_proc AS p $member AND m.classid = 'pg_proc'::regclass AND m.objid = p.oid
WHERE $is_called));
check_seen('functions',
	qq(m.classid = 'pg_proc'::regclass AND EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = m.objid AND $is_called)));

check_rows(
	'operators', qq(
SELECT format('%s | %s | `%s`', format_type(oprleft, NULL), format_type(oprright, NULL), oprname)
FROM pg_operator AS o $member AND m.classid = 'pg_operator'::regclass AND m.objid = o.oid),
	'[^|]*');
check_seen('operators', q(m.classid = 'pg_operator'::regclass));

check_rows(
	'casts', qq(
SELECT replace(format('%s (%s)',
	CASE WHEN castsource = 'scru64'::regtype THEN 'to ' || format_type(casttarget, NULL) ELSE 'from ' || format_type(castsource, NULL) END,
	CASE castcontext WHEN 'i' THEN 'implicit' WHEN 'a' THEN 'assignment' ELSE 'explicit' END),
	'character varying', 'varchar')
FROM pg_cast AS c $member AND m.classid = 'pg_cast'::regclass AND m.objid = c.oid));
check_seen('casts', q(m.classid = 'pg_cast'::regclass));

check_rows(
	'operator classes', qq(
SELECT format('%s | `%s`%s', amname, opcname, CASE WHEN opcdefault THEN ' (default)' END)
FROM pg_opclass AS c JOIN pg_am AS a ON a.oid = opcmethod
$member AND m.classid = 'pg_opclass'::regclass AND m.objid = c.oid),
	'(?:: [^|]*)?');
check_seen('operator classes', q(m.classid = 'pg_opclass'::regclass));

check_rows(
	'columns of functions', qq(
SELECT format('%s %s', name, format_type(type, NULL))
FROM pg_proc AS p $member AND m.classid = 'pg_proc'::regclass AND m.objid = p.oid,
	unnest(proallargtypes, proargmodes, proargnames) AS a (type, mode, name)
WHERE proretset AND mode = 'o' AND $is_called));

is( $node->safe_psql($db, qq(
SELECT string_agg(typname, ' ')
FROM pg_type AS t $member AND m.classid = 'pg_type'::regclass AND m.objid = t.oid
-- those of arrays and rows have been members from PostgreSQL 17 on
WHERE typelem = 0 AND typrelid = 0)),
	'scru64', 'the one type');

# What there is besides has to be added above when it comes.
is( $node->safe_psql($db, qq(
SELECT DISTINCT m.classid::regclass
FROM pg_extension AS e
JOIN pg_depend AS m ON m.deptype = 'e' AND m.refobjid = e.oid AND e.extname = 'scru64'
WHERE m.classid NOT IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_cast'::regclass,
	-- a family has the name of its class
	'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_type'::regclass))),
	'', 'no other kind of object');

#
# Where EXECUTE is not for all, the page's query grants what is for all elsewhere
#
my ($grant) = grep { $_->{section} eq 'EXECUTE was revoked' && $_->{language} eq 'sql' } blocks_of("$top/doc/troubleshooting.md");
my $for_all = q(SELECT p.oid::regprocedure
FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'scru64'
WHERE has_function_privilege('anybody', p.oid, 'EXECUTE')
ORDER BY 1);

$node->safe_psql($db, 'CREATE ROLE anybody; CREATE DATABASE revoked');
$node->safe_psql('revoked', q(
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
CREATE EXTENSION scru64;
CREATE TABLE event (id scru64 DEFAULT scru64_generate() PRIMARY KEY, what text);
GRANT ALL ON event TO anybody;
));
like(error_of($node, "SET ROLE anybody; INSERT INTO event (what) VALUES ('first')", dbname => 'revoked'), qr/ERROR:  42501: permission denied for function scru64_generate/, 'EXECUTE is revoked');
$node->safe_psql('revoked', $grant->{text});
is($node->safe_psql('revoked', $for_all), $node->safe_psql($db, $for_all), 'EXECUTE for all, as elsewhere');
is($node->safe_psql('revoked', q(
SET ROLE anybody;
INSERT INTO event (what) VALUES ('first');
COPY event (what) FROM stdin;
second
\.
SELECT count(*) FROM event WHERE id >= now() - interval '1 hour' AND id <> '000000000000';
)), '2', 'and IDs are generated and compared');

$_->stop foreach (@nodes);
done_testing();
