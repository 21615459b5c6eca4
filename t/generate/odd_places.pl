# All functions, called by each kind of process that runs SQL, and by a client that calls them
# without SQL: no process crashes.  (sql_tests/sql/odd_places.sql: in a session of psql.)

use strict;
use warnings;
use FindBin;
use IO::Socket::UNIX;
use Scru64Test;

my $node = new_node('odd', allows_streaming => 'logical');

$node->append_conf('postgresql.conf', "scru64.node_spec = '42/8'\nwal_retrieve_retry_interval = 100ms\nautovacuum_naptime = 1s\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION scru64; CREATE EXTENSION scru64_realm');
$node->safe_psql('postgres', slurp_file("$FindBin::RealBin/../../sql_tests/odd_places.sql"));
$node->safe_psql('postgres', q(
-- all functions, once for each place in each kind of process
CREATE FUNCTION odd.here(place text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	-- (later versions tell workers that copy from workers that apply)
	place := (SELECT regexp_replace(backend_type, '(tablesync|apply) ', '') FROM pg_stat_activity WHERE pid = pg_backend_pid()) || ', ' || place;
	IF NOT EXISTS (SELECT FROM odd.result AS r WHERE r.place = here.place) THEN
		PERFORM odd.try(place);
	END IF;
	RETURN true;
END
$$;
CREATE FUNCTION odd.immutable(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN odd.here('index'); END $$;
CREATE FUNCTION odd.trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM odd.here('trigger'); RETURN NEW; END $$;
CREATE DOMAIN odd.checked AS integer CHECK (odd.here('domain'));
CREATE DOMAIN odd.bound AS scru64 CHECK (VALUE < scru64_watermark());

SELECT odd.try('statement');
));

# All were called in a place, and with the results of a statement, but for these.
sub same_ok
{
	my ($place, @others) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($node->safe_psql('postgres', "SELECT code, functions FROM odd.report() WHERE place = '$place'"),
		join("\n", @others, 'all|'), $place);
}

my @in_index = ('42501|scru64_realm_internal.begin_change(boolean)');
my @no_snapshot = ('55000|scru64_watermark()');

# A block of PL/pgSQL in which all are called without a snapshot, in one line
sub block
{
	my ($place) = @_;

	return $node->safe_psql('postgres', "SELECT odd.block('$place', 'COMMIT;')") =~ s/\s+/ /gr;
}

#
# A walsender; with the snapshot of a slot, and with an exported one
#
my ($rc, $out, $err) = $node->psql('postgres', "SELECT odd.try('walsender'); DO \$do\$@{[block('walsender, no snapshot')]}\$do\$", replication => 'database');
is($err, '', 'a walsender runs SQL');
same_ok('walsender');
same_ok('walsender, no snapshot', @no_snapshot);

my $walsender = $node->background_psql('postgres', replication => 'database');
$walsender->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
$walsender->query_safe("CREATE_REPLICATION_SLOT odd TEMPORARY LOGICAL pgoutput (SNAPSHOT 'use')");
my $id = $walsender->query_safe('SELECT pg_export_snapshot()');
$node->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$id'; SELECT odd.try('exported snapshot'); COMMIT");
# its transaction cannot note the results
$walsender->query_safe(q(DO $$
DECLARE
	call odd.call;
BEGIN
	FOR call IN SELECT * FROM odd.call LOOP
		BEGIN
			EXECUTE format('SELECT num_nulls(%s)', call.expression);
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END LOOP;
END
$$; COMMIT));
is($walsender->query_safe('SELECT 1'), '1', 'snapshot of a slot');
$walsender->quit;
same_ok('exported snapshot');

#
# Workers that are no sessions: one that copies a table, one that applies changes, autovacuum
#
$node->safe_psql('postgres', 'CREATE DATABASE publisher');
$node->safe_psql('publisher', q(
CREATE EXTENSION scru64;
CREATE TABLE public.replicated (n integer, id scru64);
INSERT INTO replicated VALUES (1, '0u2r85hm2pt3');
CREATE PUBLICATION odd FOR TABLE replicated;
));
$node->safe_psql('publisher', "SELECT pg_create_logical_replication_slot('odd', 'pgoutput')");
$node->safe_psql('postgres', q(
CREATE TABLE public.replicated (n odd.checked, id odd.bound, made boolean DEFAULT odd.here('default'));
CREATE INDEX ON replicated (odd.immutable(n));
CREATE TRIGGER odd BEFORE INSERT ON replicated FOR EACH ROW EXECUTE FUNCTION odd.trigger();
ALTER TABLE replicated ENABLE ALWAYS TRIGGER odd;
));
$node->safe_psql('postgres', "CREATE SUBSCRIPTION odd CONNECTION '@{[$node->connstr]} dbname=publisher' PUBLICATION odd WITH (create_slot = false, slot_name = odd)");
$node->wait_for_subscription_sync($node, 'odd', 'postgres');
my @places = map { "logical replication worker, $_" } ('domain', 'default', 'trigger', 'index');
same_ok($_) foreach (@places);
$node->safe_psql('postgres', "DELETE FROM odd.result WHERE place LIKE 'logical%'");
$node->safe_psql('publisher', "INSERT INTO replicated VALUES (2, '0u2r85hm2pt3')");
$node->wait_for_catchup('odd');
same_ok($_) foreach (@places);
$node->safe_psql('postgres', 'ALTER SUBSCRIPTION odd DISABLE; ALTER SUBSCRIPTION odd SET (slot_name = NONE); DROP SUBSCRIPTION odd');

$node->safe_psql('postgres', q(
CREATE TABLE odd.vacuumed (n integer) WITH (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0);
CREATE INDEX ON odd.vacuumed (odd.immutable(n));
INSERT INTO odd.vacuumed SELECT generate_series(1, 10);
ALTER SYSTEM SET autovacuum = on;
SELECT pg_reload_conf();
));
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM odd.result WHERE place = 'autovacuum worker, index'"), 'autovacuum analyzes an index');
same_ok('autovacuum worker, index', @in_index);

#
# A call without SQL: there is neither a query nor a place for a set
#

# A message of the protocol, and the answer up to ReadyForQuery: the types of its messages
sub ask
{
	my ($socket, $message) = @_;
	my $types = '';

	syswrite($socket, $message);
	while ($types !~ /Z$/)
	{
		read($socket, my $head, 5) == 5 or last;
		my ($type, $length) = unpack('aN', $head);
		read($socket, my $body, $length - 4) if $length > 4;
		$types .= $type;
	}
	return $types;
}

my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "could not connect: $!";
my $user = $node->safe_psql('postgres', 'SELECT current_user');
my $startup = pack('N', 196608) . "user\0$user\0database\0postgres\0\0";
like(ask($socket, pack('N', 4 + length($startup)) . $startup), qr/^RS*KZ$/, 'a client');
my %answers;
foreach my $function (split(/\n/, $node->safe_psql('postgres', q(
SELECT p.oid, string_agg(trim(v.value, ''''), ' ' ORDER BY t.n)
FROM (SELECT DISTINCT function::regprocedure AS oid FROM odd.call) AS c JOIN pg_proc AS p USING (oid)
	LEFT JOIN unnest(p.proargtypes) WITH ORDINALITY AS t (type, n) ON true
	LEFT JOIN odd.argument AS a ON a.type = t.type
	LEFT JOIN LATERAL (SELECT replace(a.value, 'clock_timestamp()', 'now') AS value) AS v ON true
GROUP BY 1 ORDER BY 1))))
{
	my ($oid, $values) = split(/\|/, $function);
	my @values = map { $_ eq 'NULL' ? pack('N', 0xffffffff) : pack('N/a*', $_) } split(/ /, $values);
	my $body = pack('N n n', $oid, 0, scalar(@values)) . join('', @values) . pack('n', 0);

	$answers{ ask($socket, 'F' . pack('N', 4 + length($body)) . $body) }++;
}
is_deeply([ sort keys %answers ], [ 'EZ', 'VZ' ], 'each function call is answered');
like(ask($socket, 'Q' . pack('N', 13) . "SELECT 1\0"), qr/^TDCZ$/, 'and the session goes on');
close($socket);

#
# Single-user mode
#
my $mode = 'single-user mode';
my $in = "SELECT odd.try('$mode')\nDO \$do\$@{[block(qq($mode, no snapshot))]}\$do\$\n";
$node->stop;
my $log = '';
ok(IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ], '<', \$in, '>', \my $printed, '2>', \$log), $mode);
$node->start;
same_ok($mode);
same_ok("$mode, no snapshot", @no_snapshot);

unlike(slurp_file($node->logfile), qr/^TRAP: |was terminated by signal/m, 'no process has crashed');
$node->stop;
done_testing();
