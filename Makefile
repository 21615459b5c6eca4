PG_CONFIG ?= pg_config

# The release.  Extensions have versions of their own, in their control files: a release that
# changes no SQL of an extension needs no ALTER EXTENSION for it.
EXTVERSION = 1.0.0
EXTENSION = scru64 scru64_gin scru64_gist scru64_realm

MODULE_big = scru64
OBJS = \
	src/clock.o \
	src/module.o \
	src/settings.o \
	src/pure/base36.o \
	src/pure/generator.o \
	src/pure/look_ahead.o \
	src/pure/node_spec.o \
	src/pure/watermark_rules.o \
	src/type/id_time.o \
	src/type/node_spec_text.o \
	src/type/operators.o \
	src/type/selectivity.o \
	src/type/type.o \
	src/shmem/leased_slot.o \
	src/shmem/node_slots.o \
	src/shmem/open_transactions.o \
	src/shmem/shared_parts.o \
	src/shmem/slots.o \
	src/shmem/worker_mailbox.o \
	src/ceiling/ceiling.o \
	src/ceiling/ceiling_page.o \
	src/ceiling/standbys.o \
	src/generate/generate.o \
	src/generate/generate_errors.o \
	src/generate/generate_support.o \
	src/generate/session_node.o \
	src/generate/watermark.o \
	src/admin/server.o \
	src/realm/short_transaction.o

TOP = $(dir $(firstword $(MAKEFILE_LIST)))
DATA = $(patsubst $(TOP)%,%,$(wildcard $(TOP)sql/*.sql))
PGFILEDESC = "scru64 - SCRU64 identifiers"

# PostgreSQL's headers are system headers, so that -Wextra is about this code.  The libraries are
# the same wherever they are built: without the folder's name, by an option that not every
# compiler has.
PREFIX_MAP = $(shell $(CC) -ffile-prefix-map=a=b -E -x c /dev/null >/dev/null 2>&1 && \
	echo -ffile-prefix-map=$(abspath $(srcdir))=. -ffile-prefix-map=$(CURDIR)=.)
PG_CPPFLAGS = -DSCRU64_VERSION='"$(EXTVERSION)"' $(PREFIX_MAP) \
	-I$(srcdir)/src \
	-isystem $(shell $(PG_CONFIG) --includedir-server)

REGRESS = $(patsubst sql_tests/sql/%.sql,%,$(sort $(wildcard sql_tests/sql/*.sql)))
REGRESS_OPTS = --inputdir=sql_tests --outputdir=. --encoding=UTF8

# The TAP tests need a Perl module that PostgreSQL does not, and start servers.
ifeq ($(shell id -u),0)
NO_TAP_TESTS = root cannot start a server. scripts/test starts them as another user
else ifneq ($(shell perl -MIPC::Run -e 'print 1' 2>/dev/null),1)
NO_TAP_TESTS = they need the Perl module IPC::Run, on Debian and Ubuntu the package libipc-run-perl
else
TAP_TESTS = 1
endif
PROVE_TESTS ?= t/*/*.pl

EXTRA_CLEAN = tmp_check scru64-*.zip

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" is no pg_config that runs: install PostgreSQL's server headers, on Debian and \
Ubuntu the package postgresql-server-dev-NN, or say where it is: make PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)

# Where libraries are of ELF, all of a process share one name space.  (PostgreSQL itself sees to
# it on Solaris.  On Windows and macOS, a name is that of a library.)
ifneq ($(filter linux freebsd netbsd openbsd, $(PORTNAME)),)
EXPORTED = -Wl,--version-script=$(abspath $(srcdir))/src/exported.map
SHLIB_LINK += $(EXPORTED)
endif

# The clocks of mingw-w64, whose library a server for Windows need not have
ifeq ($(PORTNAME), win32)
SHLIB_LINK += -l:libwinpthread.a
endif

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/*/*.h) $(srcdir)/src/exported.map Makefile

# A build outside the tree, make -f TREE/Makefile, begins without folders.
$(shell mkdir -p src/lease_worker $(dir $(OBJS)))

# The lease worker's library has a Makefile of its own: PGXS makes one library a Makefile.
# This one is linked before it: it calls this one, and three objects of src/pure/ are in both.
LEASE_WORKER = $(addsuffix -lease-worker, all install installdirs uninstall clean)
.PHONY: $(LEASE_WORKER)
$(LEASE_WORKER): %-lease-worker:
	$(MAKE) -C src/lease_worker -f $(abspath $(srcdir))/src/lease_worker/Makefile $* \
		PREFIX_MAP='$(PREFIX_MAP)' EXPORTED='$(EXPORTED)'
all: all-lease-worker
all-lease-worker: all-shared-lib
install: install-lease-worker
install-lease-worker: all-lease-worker
installdirs: installdirs-lease-worker
uninstall: uninstall-lease-worker
clean: clean-lease-worker

ifeq ($(if $(NO_TAP_TESTS),$(TAP_TESTS),1),)
installcheck: no-tap-tests
.PHONY: no-tap-tests
no-tap-tests:
	@echo "The TAP tests in t/ are left out: $(NO_TAP_TESTS)." >&2
endif

.PHONY: unit-check
unit-check:
	$(MAKE) -C $(srcdir)/unit_tests check
.PHONY: proofs
proofs:
	$(MAKE) -C $(srcdir)/unit_tests $@
.PHONY: sim-check sim-coverage
sim-check sim-coverage: sim-%:
	$(MAKE) -C $(srcdir)/unit_tests/sim $* PG_CONFIG='$(PG_CONFIG)'
clean: clean-unit
.PHONY: clean-unit
clean-unit:
	$(MAKE) -C $(srcdir)/unit_tests clean
	$(MAKE) -C $(srcdir)/unit_tests/sim clean PG_CONFIG='$(PG_CONFIG)'

# The archives of a release, of what is committed: for PGXN, and Debian's .orig.tar.gz.  They
# are the same, byte for byte, each time.
DIST = scru64-$(EXTVERSION)
ARCHIVE = TZ=UTC git -c core.autocrlf=false -c tar.umask=0022 archive --prefix=$(DIST)/
.PHONY: dist
dist:
	$(ARCHIVE) --format=zip -o $(DIST).zip HEAD
	$(ARCHIVE) --format=tar HEAD | gzip -9n > $(DIST).tar.gz
