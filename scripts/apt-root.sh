#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# apt-root.sh [--install] DIR SUITE...: make a private apt root in DIR that knows
# the named Debian suites.
#
# The machine's own apt configuration is read (mirror, proxy), never changed. The
# root serves one of two purposes:
#   without --install  `apt-get download` from these suites alone, without root
#                      rights, as if nothing were installed here
#   with --install     as root, installing a package from a suite (backports) that
#                      the machine does not list: its own Debian suites are known
#                      too, and so is what is installed
#
# Prints the path of an apt.conf to be used as APT_CONFIG=PATH.
# Exit: 0 done, 1 no usable Debian source on this machine or no network, 2 usage.
set -eu

install=
[ "${1:-}" != --install ] || { install=1; shift; }
[ $# -ge 2 ] || { echo "usage: apt-root.sh [--install] DIR SUITE..." >&2; exit 2; }
dir=$1
shift
mkdir -p "$dir/etc/apt.conf.d" "$dir/etc/preferences.d" "$dir/lists/partial" \
	"$dir/cache/archives/partial" "$dir/state"
dir=$(cd "$dir" && pwd)
: >>"$dir/state/status"

# The Debian repositories of this machine: URI, codename, component, a line each.
repositories()
{
	apt-get "$@" indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' \
		'Created-By: Packages' | awk '$4 ~ /^Debian/ { print $1, $2, $3 }' | sort -u
}

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
known=$(repositories)
if [ -z "$known" ]; then
	# A fresh container has sources, but no lists yet, and we may not be root.
	mkdir -p "$dir/system/lists/partial" "$dir/system/cache"
	apt-get -qq -o Dir::State::lists="$dir/system/lists" -o Dir::Cache="$dir/system/cache" \
		-o APT::Sandbox::User= -o Acquire::Retries=3 update >&2 || :
	known=$(repositories -o Dir::State::lists="$dir/system/lists" \
		-o Dir::Cache="$dir/system/cache")
fi
uri=$(echo "$known" | awk -v c="$codename" '$2 == c && $3 == "main" { print $1; exit }')
if [ -z "$uri" ]; then
	echo "apt-root.sh: apt knows no Debian repository of release '$codename' here;" \
		"list one in /etc/apt/sources.list and run 'apt-get update'" >&2
	exit 1
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ ! -r "$keyring" ] || signed="[signed-by=$keyring] "

{
	if [ -n "$install" ]; then
		echo "$known" | sed "s|^|deb $signed|"
	fi
	for suite; do
		echo "deb $signed$uri $suite main"
	done
} | sort -u >"$dir/etc/sources.list.new"
# A changed list of suites makes the fetched lists stale.
if ! cmp -s "$dir/etc/sources.list.new" "$dir/etc/sources.list"; then
	mv "$dir/etc/sources.list.new" "$dir/etc/sources.list"
	rm -f "$dir/lists/.fetched"
else
	rm -f "$dir/etc/sources.list.new"
fi

{
	# Everything the machine set about transport (proxy, timeouts) stays valid.
	apt-config dump | grep -E '^Acquire::(http|https|Proxy|Check-Valid-Until|Check-Date)' || :
	cat <<-CONF
	Acquire::Retries "3";
	Dir::Etc::sourcelist "$dir/etc/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::Etc::preferencesparts "$dir/etc/preferences.d";
	Dir::State::lists "$dir/lists";
	Dir::Cache "$dir/cache";
	APT::Install-Recommends "false";
	APT::Sandbox::User "";
	CONF
	[ -n "$install" ] || echo "Dir::State::status \"$dir/state/status\";"
} >"$dir/apt.conf"

# Lists older than a day are fetched again; a package named by a stale list may
# be gone from the mirror.
if [ -z "$(find "$dir/lists/.fetched" -mtime -1 2>/dev/null)" ]; then
	APT_CONFIG="$dir/apt.conf" apt-get -qq -o APT::Update::Error-Mode=any update >&2 || {
		echo "apt-root.sh: cannot fetch the package lists of: $*" >&2
		exit 1
	}
	touch "$dir/lists/.fetched"
fi
echo "$dir/apt.conf"
