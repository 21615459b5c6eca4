# For the Makefiles of the libraries, when PGXS is included.  Where libraries are of ELF, all of a
# process share one name space.  (PostgreSQL itself sees to it on Solaris.  On Windows and macOS, a
# name is that of a library.)

EXPORTED_MAP = $(dir $(lastword $(MAKEFILE_LIST)))exported.map
ifneq ($(filter linux freebsd netbsd openbsd, $(PORTNAME)),)
SHLIB_LINK += -Wl,--version-script=$(EXPORTED_MAP)
endif
