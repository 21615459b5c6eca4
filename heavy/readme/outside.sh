# shellcheck shell=bash disable=SC2034,SC2154
#
# outside.sh
#		Three ways to a server by README.md, each in a new copy of the release.
#
# To be sourced by scripts/heavy.

# Set deb to the package of a release that is of these sources.
find_package()
{
	deb=$(find "$cache/packages/$1" -name 'postgresql-*-scru64_*.deb' 2>/dev/null | head -n 1)
	if [[ -z $deb || -n $(find debian doc examples plain realm sql src ./*.control ./*.md Makefile -type f ! -name '*.[os]*' ! -name '*.bc' -newer "$deb") ]]; then
		scripts/release "$1" || return
		deb=$(find "$cache/packages/$1" -name 'postgresql-*-scru64_*.deb')
	fi
}

paste_in()
{
	local release=$1 way=$2 deb root root_release status=0

	[[ $way != package ]] || find_package "$release" || return
	make_copy "$release" "$release" || return
	copy_checkout "$root/scru64" || return
	[[ $way != package ]] || cp "$deb" "$root/scru64/"
	say "127.0.0.1 $(hostname)" >>"$root/etc/hosts"
	if [[ $way == container ]]; then
		in_container enter "$root" /scru64/heavy/readme/run "$way" || status=$?
	else
		enter "$root" /scru64/heavy/readme/run "$way" || status=$?
	fi
	remove_copy
	return "$status"
}

test_releases()
{
	local release way

	for release in "${releases[@]}"; do
		for way in container package sources; do
			row "readme-$release-$way" paste_in "$release" "$way"
		done
	done
}
