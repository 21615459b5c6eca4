PG_CONFIG ?= pg_config

# The release.  Extensions have versions of their own, in their control files: a release that
# changes no SQL of an extension needs no ALTER EXTENSION for it.
EXTVERSION = 1.0.0
EXTENSION = scru64 scru64_gin scru64_gist

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
	src/admin/server.o

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

# The tests of realm/ are run by its Makefile, before these, in a database of their own: those
# that the command line names, or all of them.
names_of = $(patsubst $(TOP)$(1)/%.sql,%,$(sort $(wildcard $(TOP)$(1)/*.sql)))
REALM_TESTS := $(call names_of,realm/sql_tests/sql)
REGRESS = $(call names_of,sql_tests/sql) $(REALM_TESTS)
REALM_REGRESS := $(filter $(REALM_TESTS), $(REGRESS))
override REGRESS := $(filter-out $(REALM_TESTS), $(REGRESS))
REGRESS_OPTS = --inputdir=sql_tests --outputdir=. --encoding=UTF8

PROVE_TESTS ?= t/*/*.pl realm/t/*/*.pl
# where there are no tests, there is no such file
-include $(TOP)t/lib/tap.mk

EXTRA_CLEAN = tmp_check scru64-*.zip

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(PGXS),)
$(error "$(PG_CONFIG)" is no pg_config that runs: install PostgreSQL's server headers, on Debian and \
Ubuntu the package postgresql-server-dev-NN, or say where it is: make PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)

include $(srcdir)/src/exported.mk

# The clocks of mingw-w64, whose library a server for Windows need not have
ifeq ($(PORTNAME), win32)
SHLIB_LINK += -l:libwinpthread.a
endif

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/*/*.h) $(EXPORTED_MAP) Makefile

# A build outside the tree, make -f TREE/Makefile, begins without folders.
$(shell mkdir -p realm $(dir $(OBJS)))

# The realm's folder has a Makefile of its own: PGXS makes one library a Makefile.  Its lease
# worker calls this library, which for Windows is linked before it.
IN_REALM = -C realm -f $(abspath $(srcdir))/realm/Makefile PREFIX_MAP='$(PREFIX_MAP)' \
	$(if $(filter command,$(origin VPATH)),VPATH='$(abspath $(srcdir))/realm')
REALM = $(addsuffix -realm, all install installdirs uninstall clean)
.PHONY: $(REALM) installcheck-realm
$(REALM): %-realm:
	$(MAKE) $(IN_REALM) $*
all: all-realm
all-realm: all-shared-lib
install: install-realm
install-realm: all-realm
# The lease worker's library comes first: a session that loads a new scru64.so may start the worker.
install-lib-shared: install-realm
installdirs: installdirs-realm
uninstall: uninstall-realm
clean: clean-realm

ifneq ($(REALM_REGRESS),)
installcheck: installcheck-realm
installcheck-realm:
	$(MAKE) $(IN_REALM) installcheck REGRESS='$(REALM_REGRESS)' TAP_TESTS= NO_TAP_TESTS=
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
