# shellcheck shell=bash disable=SC2034,SC2154
#
# outside.sh
#		scripts/test --all in each release.  s390x is emulated by qemu, so only what needs no
#		more than some minutes there runs: unit tests and pg_regress.
#
# To be sourced by scripts/heavy.

# What a program for s390x begins with, and which bits of that count, as
# scripts/qemu-binfmt-conf.sh of qemu's sources has it
readonly magic='\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16'
readonly mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff'

interpreters=				# the kernel's list, where it is mounted

# Have the kernel run programs for s390x by trixie's qemu, in every tree, until this ends: it
# opens qemu now (F), and says by which name a program was called (P).  Newer kernels forget
# that when nobody has their list mounted.
emulate_s390x()
{
	local root root_release

	[[ $(uname -m) == x86_64 ]] || die "this needs an x86-64 processor"
	if [[ ! -e $cache/qemu-s390x ]]; then
		make_copy trixie qemu
		enter_quietly "$work/log/qemu" "$root" sh -ec '
			apt-get -q update
			apt-get -q -y --no-install-recommends install qemu-user' || die "qemu could not be installed"
		mv "$root/usr/bin/qemu-s390x" "$cache/"
		remove_copy
	fi
	mkdir "$work/interpreters"
	mount -t binfmt_misc binfmt_misc "$work/interpreters" || die "this kernel has no binfmt_misc"
	interpreters=$work/interpreters
	printf %s ":scru64-$$:M::$magic:$mask:$cache/qemu-s390x:PF" >"$interpreters/register"
}

cleanup_matrix()
{
	set +e
	if [[ -n $interpreters ]]; then
		echo -1 >"$interpreters/scru64-$$"
		umount "$interpreters"
	fi
	cleanup_chroots
}

cleanup=cleanup_matrix

test_release()
{
	local -a command=(/scru64/scripts/test --all)

	case $1 in
		cassert | exec | blocks32) command=(env "PG_CONFIG=/usr/lib/postgresql/$1/bin/pg_config" "${command[@]}") ;;
		# uname says what the tree is of
		i386) command=(setarch i386 "${command[@]}") ;;
		s390x)
			emulate_s390x
			command=(setarch s390x env EMULATED=1 /scru64/scripts/test unit pg_regress)
			;;
	esac
	in_copy "$1" "${command[@]}"
}
