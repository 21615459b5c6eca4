# The realm's SQL in one server, under simulated clocks, failovers, restores and owners: no
# server is stopped.  A failover is the ledger as a standby last had it, under another
# identity.  No two promises that holders have heard have an ID in common, and a failover costs
# no holder an active lease that the realm knows.
#
# The world is realm/t/realm/simulator.sql.  An episode follows a template of realm/t/realm/simulator_templates, a
# row of steps, and chance decides the rest: how often, when, how long, who.  Chance keeps to
# the conditions of doc/realm.md, "Failover and restore".
#
# SCRU64_SEED: the seed of the first episode; the next one has the next seed.  A violation
# prints its seed, and what happened.  SCRU64_REALM_EPISODES: how many.
# SCRU64_REALM_SECONDS: for how long instead.  SCRU64_REALM_MUTANTS: a pattern of names; each
# mutant of heavy/mutants/table has to violate something, too.

use strict;
use warnings;
use FindBin;
use Scru64Mutants;
use Scru64Random;
use Scru64Test;

use constant BATCH => 50;
use constant MUTANT_EPISODES => 1500;

plan skip_all => 'long: PG_TEST_EXTRA has no scru64' if ($ENV{PG_TEST_EXTRA} // '') !~ /\bscru64\b/;

my $top = "$FindBin::RealBin/../../..";
my $seed = seed_random();
my $episodes = $ENV{SCRU64_REALM_EPISODES} || 600;
my $seconds = $ENV{SCRU64_REALM_SECONDS};

my $node = new_node('realm');
$node->append_conf('postgresql.conf', "fsync = off\nsynchronous_commit = off");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION scru64_realm CASCADE');
my $columns = $node->safe_psql('postgres', q(
SELECT string_agg(attname, ', ') FROM pg_attribute
WHERE attrelid = 'scru64_realm.ledger'::regclass AND attnum > 0 AND attgenerated = ''));
my $simulator = slurp_file("$top/realm/t/realm/simulator.sql") =~ s/:columns/$columns/gr;
$simulator =~ s/^step (\w+):(.*?)(?=^\S)/CREATE FUNCTION step.$1() RETURNS void LANGUAGE sql AS \$\$ SELECT$2 \$\$;\n/gms;
my %template = slurp_file("$top/realm/t/realm/simulator_templates") =~ /^(\w+) (.*)$/mg;
$node->safe_psql('postgres', $simulator . join('', map { "INSERT INTO sim.template VALUES ('$template{$_}');\n" } sort keys %template));

# Episodes from the seed on until enough are done, or one is a violation: how many, how many
# promises were heard, the violation, and what happened
sub simulate
{
	my ($database, $is_enough) = @_;
	my ($done, $promises) = (0, 0);
	my $run = sub {
		my ($messages, $verbosity, $count) = @_;

		return $node->psql($database, "SET client_min_messages = $messages;\n\\set VERBOSITY $verbosity\n"
			  . join('', map { "SELECT $_, sim.episode($_);\n" } $seed + $done .. $seed + $done + $count - 1) . "VACUUM\n");
	};

	until ($is_enough->($done))
	{
		my ($ret, $out, $err) = $run->('warning', 'verbose', BATCH);

		$done += () = $out =~ /^\d+\|/mg;
		$promises += $_ foreach ($out =~ /\|(\d+)$/mg);
		next if $ret == 0;
		my ($violation) = $err =~ /ERROR:  (?:SIM01|23\w{3}): (.*)/ or die $err;
		return ($done, $promises, $violation, ($run->('notice', 'terse', 1))[2]);
	}
	return ($done, $promises, '');
}

sub try_mutant
{
	my ($mutant) = @_;
	my ($aim) = map { $template{$_} } $mutant->{finder} =~ /^realm (.*)/;
	my $why_not = $mutant->{why_not};
	my %function = broken($mutant, $top);
	my $began = time();

	$node->safe_psql('postgres', "DROP DATABASE IF EXISTS mutant;\nCREATE DATABASE mutant TEMPLATE postgres;\n"
		  . 'ALTER DATABASE mutant SET search_path = scru64_realm_internal, scru64_realm, public');
	$node->safe_psql('mutant', join('', "DELETE FROM sim.template WHERE steps <> '$aim';\n", map { "CREATE OR REPLACE $_" } values %function));
	my ($done, undef, $violation) = simulate('mutant', sub { $_[0] >= (defined $why_not ? $episodes : MUTANT_EPISODES) });

	ok(($violation eq '') == defined $why_not, sprintf('%s: %d episodes, %.1f s, %s',
			$mutant->{name}, $done, time() - $began, $violation ne '' ? $violation : $why_not // 'not found'));
	return;
}

my $began = time();
my ($done, $promises, $violation, $trace) = simulate('postgres', sub { $seconds ? time() > $began + $seconds : $_[0] >= $episodes });

is($violation, '', 'no ID is promised twice, and no active lease is refused') or diag("SCRU64_SEED=@{[$seed + $done]} SCRU64_REALM_EPISODES=1\n$trace");
cmp_ok($promises, '>', 3 * $done, sprintf('%d promises in %d episodes, %.1f a second', $promises, $done, $done / (time() - $began)));
my $which = $ENV{SCRU64_REALM_MUTANTS} // '';
try_mutant($_) foreach (grep { $which ne '' && $_->{finder} =~ /^realm / && $_->{name} =~ /$which/ } mutants($top));
done_testing();
