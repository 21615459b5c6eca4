# For the Makefiles whose folders have TAP tests, before PGXS is included.  The tests need a Perl
# module that PostgreSQL does not, and start servers.

.DEFAULT_GOAL := all

# where the modules of all tests, and those of the realm's, are
TAP_LIB := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
override PROVE_FLAGS += -I $(TAP_LIB) -I $(abspath $(TAP_LIB)/../../realm/t/lib)

ifeq ($(shell id -u),0)
NO_TAP_TESTS = root cannot start a server. scripts/test starts them as another user
else ifneq ($(shell perl -MIPC::Run -e 'print 1' 2>/dev/null),1)
NO_TAP_TESTS = they need the Perl module IPC::Run, on Debian and Ubuntu the package libipc-run-perl
else
TAP_TESTS = 1
endif

ifeq ($(if $(NO_TAP_TESTS),$(TAP_TESTS),1),)
installcheck: no-tap-tests
.PHONY: no-tap-tests
no-tap-tests:
	@echo "The TAP tests in t/ are left out: $(NO_TAP_TESTS)." >&2
endif
