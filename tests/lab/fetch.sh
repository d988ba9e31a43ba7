#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# fetch.sh [--update] [KERNEL]: have a stock kernel and its headers in the cache.
#
# Prints, as shell assignments, where they are:
#   NAME     its name in kernels.list
#   RELEASE  what `uname -r` says in the guest
#   VMLINUZ  image to boot
#   MODULES  directory lib/modules/RELEASE of the image
#   KDIR     build directory for out-of-tree modules (its vmlinux carries BTF)
#   ENTER    put before `make`: the kernel's own release of the build tools (see
#            enter.sh); empty if those of this machine do
#   TIERS, NEED  the columns of kernels.list
#
# No root rights: packages are fetched in a private apt root and unpacked, not
# installed. What is in the cache is used as it is; --update asks apt for a newer
# version. Cache: $TIER_CACHE, else $XDG_CACHE_HOME/tier-policy, else
# ~/.cache/tier-policy.
#
# Exit: 0 done, 1 failed, 2 usage.
set -eu

me=fetch.sh
here=$(cd "$(dirname "$0")" && pwd)
scripts=$(cd "$here/../../scripts" && pwd)
list=${TIER_KERNELS:-$here/kernels.list}

die()
{
	echo "$me: $*" >&2
	exit 1
}

names()
{
	awk '!/^#/ && NF { printf "%s%s", sep, $1; sep = " " }' "$list"
}

update=
name=
while [ $# -gt 0 ]; do
	case $1 in
	--update) update=1 ;;
	-h | --help) sed -n '3,21s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-*) echo "$me: unknown option '$1'; try --help" >&2; exit 2 ;;
	*) name=$1 ;;
	esac
	shift
done
[ -n "$name" ] || name=$(awk '!/^#/ && NF { print $1; exit }' "$list")

row=$(awk -v n="$name" '!/^#/ && $1 == n { print $2, $3, $4, $5, $6; exit }' "$list")
if [ -z "$row" ]; then
	echo "$me: no kernel '$name' in kernels.list; it has: $(names)" >&2
	exit 2
fi
read -r suites image tiers need tools <<ROW
$row
ROW

cache=${TIER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIER_CACHE}/.cache}/tier-policy}
store=$cache/kernels/$name

# quote WORD: as one word of shell input.
quote()
{
	printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}

# show TREE: the assignments; fails if the tree is not whole.
show()
{
	tree=$(cd "$1" 2>/dev/null && pwd -P) || return 1
	[ -e "$tree/.whole" ] || return 1
	release=$(cat "$tree/.whole")
	echo "NAME=$name"
	echo "RELEASE=$(quote "$release")"
	echo "VMLINUZ=$(quote "$tree/boot/vmlinuz-$release")"
	echo "MODULES=$(quote "$tree/lib/modules/$release")"
	echo "KDIR=$(quote "$tree/usr/src/linux-headers-$release")"
	enter=
	[ "$tools" != own ] || enter="$here/enter.sh $tree/tools"
	echo "ENTER=$(quote "$enter")"
	echo "TIERS=$tiers"
	echo "NEED=$need"
}

[ -n "$update" ] || ! show "$store/current" || exit 0

mkdir -p "$store"
# Two fetches of one kernel: the second waits and finds the work done.
exec 9>"$store/lock"
flock 9
[ -n "$update" ] || ! show "$store/current" || exit 0

host=$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
suite=$(echo "$suites" | tr , '\n' | sed -n "s/^$host=//p")
[ -n "$suite" ] || die "kernel $name has no suite for release '$host' of this machine" \
	"(kernels.list says: $suites); add one there"

conf=$(sh "$scripts/apt-root.sh" "$cache/apt/$suite" "$suite") ||
	die "cannot set up apt for suite $suite (see above)"
export APT_CONFIG="$conf"

# depends PACKAGE: names of the kernel packages it depends on.
depends()
{
	apt-cache depends --no-recommends \
		--no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$1" |
		sed -n 's/^ *Depends: \(linux-[a-z]*-[0-9][^ ]*\)$/\1/p'
}

# closure PACKAGE...: the packages and all kernel packages below them.
closure()
{
	seen=
	while [ $# -gt 0 ]; do
		package=$1
		shift
		case " $seen " in *" $package "*) continue ;; esac
		seen="$seen $package"
		# shellcheck disable=SC2046 # package names have no blanks
		set -- "$@" $(depends "$package")
	done
	echo "$seen"
}

real=$(depends "$image" | sed -n '/^linux-image-/{p;q}')
[ -n "$real" ] || die "package $image of suite $suite leads to no kernel image;" \
	"try: apt-get update, then fetch.sh --update $name"
release=${real#linux-image-}
release=${release%-unsigned}
packages=$(closure "$real" "linux-headers-$release")
version=$(apt-cache policy "$real" |
	sed -n 's/^ *Candidate: //p')
tree=$store/$(echo "$release-$version" | tr -c 'A-Za-z0-9.+~\n-' _)

# download DIR PACKAGE...
download()
{
	into=$1
	shift
	mkdir -p "$into"
	tries=3
	until (cd "$into" && apt-get -qq download "$@"); do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || die "apt could not download: $*"
		echo "$me: download failed, trying again" >&2
		sleep 2
	done
}

# unpack DIR TREE: the packages in DIR.
unpack()
{
	mkdir -p "$2"
	for deb in "$1"/*.deb; do
		dpkg-deb -x "$deb" "$2" || die "cannot unpack ${deb##*/}"
	done
}

# build_tools TREE: what builds a module, from the kernel's own suite, for kernels
# whose build tools want a newer C library or compiler than this machine has.
build_tools()
{
	gcc=$(apt-cache depends "linux-headers-$release" |
		sed -n 's/^ *Depends: \(gcc-[0-9]*\).*/\1/p' | head -n 1)
	names=$(apt-get -qq -s --no-install-recommends install base-files dash coreutils sed \
		grep gawk findutils diffutils gzip make libc6-dev libelf1t64 pahole "${gcc:-gcc}" |
		sed -n 's/^Inst \([^ ]*\).*/\1/p')
	[ -n "$names" ] || die "apt finds no build tools in $suite"
	echo "$me: fetching the build tools of $suite" >&2
	# shellcheck disable=SC2086 # a list of package names
	download "$work/tools" $names
	mkdir -p "$1/usr"
	for dir in bin sbin lib lib64; do
		mkdir "$1/usr/$dir"
		ln -s "usr/$dir" "$1/$dir"
	done
	unpack "$work/tools" "$1"
	# What the packages' own scripts would have linked.
	[ -e "$1/usr/bin/awk" ] || ln -s gawk "$1/usr/bin/awk"
	[ -e "$1/usr/bin/sh" ] || ln -s dash "$1/usr/bin/sh"
}

if ! [ -e "$tree/.whole" ]; then
	# Left over from fetches that were killed.
	rm -rf "$store"/.new.*
	work=$(mktemp -d "$store/.new.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	echo "$me: fetching Linux $release from $suite" >&2
	# shellcheck disable=SC2086 # a list of package names
	download "$work/debs" $packages
	unpack "$work/debs" "$work/tree"

	root=$work/tree
	kdir=$root/usr/src/linux-headers-$release
	# From Debian 13 on the modules are packed under /usr/lib.
	if [ -d "$root/usr/lib/modules" ] && [ ! -e "$root/lib/modules" ]; then
		mkdir -p "$root/lib"
		ln -s ../usr/lib/modules "$root/lib/modules"
	fi
	# A split image has it there, and puts it into /boot when it is installed.
	if [ -r "$root/lib/modules/$release/vmlinuz" ]; then
		mkdir -p "$root/boot"
		ln -s "../lib/modules/$release/vmlinuz" "$root/boot/vmlinuz-$release"
	fi
	[ -r "$root/boot/vmlinuz-$release" ] || die "$real holds no boot/vmlinuz-$release"
	[ -d "$root/lib/modules/$release" ] || die "$real holds no lib/modules/$release"
	[ -r "$kdir/Makefile" ] || die "linux-headers-$release holds no build directory"
	# The headers name the common part by its installed place; name it from
	# where the including file is instead, so that the tree may be anywhere.
	# shellcheck disable=SC2016 # make's variables, not the shell's
	sed -i -e 's|^include /usr/src/|include $(dir $(lastword $(MAKEFILE_LIST)))../|' \
		-e 's|^KBUILD_OUTPUT=/usr/src/.*|KBUILD_OUTPUT := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))|' \
		"$kdir/Makefile"
	if grep -q '/usr/src' "$kdir/Makefile"; then
		die "the headers of $release refer to an absolute path: $(grep /usr/src "$kdir/Makefile")"
	fi
	ln -sfn "$(realpath --relative-to="$root/lib/modules/$release" "$kdir")" \
		"$root/lib/modules/$release/build"
	rm -f "$root/lib/modules/$release/source"
	[ "$tools" != own ] || build_tools "$root/tools"
	# A tree counts only with this mark, which is made last.
	echo "$release" >"$root/.whole"
	rm -rf "$tree"
	mv "$root" "$tree"
	rm -rf "$work"
	trap - EXIT HUP INT TERM
fi

ln -sfn "${tree##*/}" "$store/.current.new"
mv -T "$store/.current.new" "$store/current"
show "$store/current"
