#!/bin/sh
# apt-root.sh DIR SUITE...: make a private apt root in DIR that knows the named suites.
#
# The machine's own apt configuration is read (mirror, keyring, proxy), never
# changed. The root serves two purposes: `apt-get -o Dir=... download` of kernel
# packages without root rights, and, as root, installing one package from a
# suite (backports) that the machine does not list itself.
#
# Prints the path of an apt.conf to be used as APT_CONFIG=PATH.
# Exit: 0 done, 1 no usable Debian source on this machine, 2 usage.
set -eu

[ $# -ge 2 ] || { echo "usage: apt-root.sh DIR SUITE..." >&2; exit 2; }
dir=$1; shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# The Debian repository that the machine uses for its own release: the first
# Packages target of component main whose repository also carries dpkg itself.
. /etc/os-release
codename=${VERSION_CODENAME:-}
target=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(SIGNED_BY)' \
		'Created-By: Packages' |
	awk -v c="$codename" '$2 == c && $3 == "main" { print $1, $4; exit }')
uri=${target%% *}
if [ -z "$uri" ]; then
	echo "apt-root.sh: apt lists no '$codename main' repository on this machine;" \
		"run 'apt-get update' with a Debian source configured" >&2
	exit 1
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || keyring=
signed=${keyring:+"[signed-by=$keyring] "}

mkdir -p "$dir/etc/apt.conf.d" "$dir/etc/preferences.d" "$dir/etc/trusted.gpg.d" \
	"$dir/lists/partial" "$dir/cache/archives/partial" "$dir/state"
: >>"$dir/state/status"
: >"$dir/etc/sources.list.new"
for suite; do
	echo "deb $signed$uri $suite main" >>"$dir/etc/sources.list.new"
done
# A changed list of suites makes the fetched lists stale.
if ! cmp -s "$dir/etc/sources.list.new" "$dir/etc/sources.list"; then
	mv "$dir/etc/sources.list.new" "$dir/etc/sources.list"
	rm -f "$dir/lists/.fetched"
else
	rm -f "$dir/etc/sources.list.new"
fi

{
	# Everything the machine set about transport (proxy, timeouts) stays valid.
	apt-config dump | grep '^Acquire::\(http\|https\|Proxy\|Retries\)' || :
	cat <<-CONF
	Dir::Etc::sourcelist "$dir/etc/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::Etc::preferencesparts "$dir/etc/preferences.d";
	Dir::State::lists "$dir/lists";
	Dir::Cache "$dir/cache";
	APT::Install-Recommends "false";
	APT::Sandbox::User "";
	CONF
} >"$dir/apt.conf"

# Lists older than a day are fetched again; a package named by a stale list may
# be gone from the mirror.
if [ -z "$(find "$dir/lists/.fetched" -mtime -1 2>/dev/null)" ]; then
	APT_CONFIG="$dir/apt.conf" apt-get -qq -o Dir::State::status="$dir/state/status" update >&2
	touch "$dir/lists/.fetched"
fi
echo "$dir/apt.conf"
