#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# deps.sh [GROUP]...: install what the project needs on Debian 12 or 13.
#
#   build   compilers, libraries and tools to build everything (default)
#   lab     QEMU and what makes the guest's root (default)
#   bench   what the benchmarks run and draw with
#
# Silent if all is there. As root, or through sudo. On Debian 12 some packages are
# newer ones from backports; the machine's own apt configuration is not changed
# for that.
#
# Exit: 0 all is there, 1 failed, 2 usage.
set -eu

me=deps.sh
here=$(cd "$(dirname "$0")" && pwd)

build="make gcc libc6-dev clang-19 llvm-19 pahole libbpf-dev>=1:1.4 libelf-dev zlib1g-dev
	libcmocka-dev libjson-c-dev libncurses-dev libmicrohttpd-dev libnuma-dev bpftool pkg-config"
lab="qemu-system-x86>=1:10 busybox-static cpio kmod xz-utils zstd strace numactl procps
	tmux memcached
	python3 python3-jsonschema python3-prometheus-client"
bench="gnuplot-nox python3"

die()
{
	echo "$me: $*" >&2
	exit 1
}

wanted=
for group in "${@:-build lab}"; do
	for name in $group; do
		case $name in
		build) wanted="$wanted $build" ;;
		lab) wanted="$wanted $lab" ;;
		bench) wanted="$wanted $bench" ;;
		-h | --help) sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
		*) echo "$me: no group '$name': build, lab or bench" >&2; exit 2 ;;
		esac
	done
done

command -v dpkg-query >/dev/null || die "this is not Debian; install by hand:" $wanted

# Wanted packages that are absent ("name - least") or whose version matters ("name
# version least"). A name may be provided by another package (pkg-config by pkgconf).
missing=
newer=
while read -r name have least; do
	[ -n "$name" ] || continue
	if [ -z "$least" ]; then
		missing="$missing $name"
	elif [ "$have" = - ] || dpkg --compare-versions "$have" lt "$least"; then
		newer="$newer $name"
	fi
done <<LIST
$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Version} ${Provides}\n' |
	awk -v wanted="$wanted" '
		$1 == "installed" {
			have[$2] = $3
			for (i = 4; i <= NF; i++) {
				sub(/,$/, "", $i)
				if (!($i in have))
					have[$i] = "-"
			}
		}
		END {
			n = split(wanted, want)
			for (i = 1; i <= n; i++) {
				split(want[i], part, ">=")
				if (!(part[1] in have))
					print part[1], "-", part[2]
				else if (part[2] != "")
					print part[1], have[part[1]], part[2]
			}
		}')
LIST
[ -n "$missing$newer" ] || exit 0

release=$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
case $release in
"debian 12") backports=bookworm-backports ;;
"debian 13") backports= ;;
*) die "knows the package names of Debian 12 and 13, not of '$release';" \
	"missing here:$missing$newer" ;;
esac

if [ "$(id -u)" != 0 ]; then
	if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		echo "$me: missing:$missing$newer; installing with sudo" >&2
		exec sudo sh "$here/$me" "$@"
	fi
	die "missing:$missing$newer; run as root: sh scripts/$me $*"
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
root=
trap 'rm -rf "$log" ${root:+"$root"}' EXIT
trap 'exit 1' HUP INT TERM

# quiet COMMAND...: its output is shown only if it fails.
quiet()
{
	"$@" </dev/null >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

install()
{
	quiet apt-get -y -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
		-o Dpkg::Options::=--force-confold install --no-install-recommends "$@"
}

update()
{
	quiet apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 update
}

if [ -z "$backports" ]; then
	missing="$missing$newer"
	newer=
fi

if [ -n "$missing" ]; then
	echo "$me: installing$missing" >&2
	# The lists that the machine has may do; if they are absent or name packages
	# that are gone, fetch them and try again. A mirror may hiccup once.
	# shellcheck disable=SC2086 # a list of package names
	{ apt-get -qq -s install --no-install-recommends $missing >/dev/null 2>&1 &&
			install $missing 2>/dev/null; } ||
		{ update && install $missing; } ||
		{ sleep 5; update && install $missing; } ||
		die "apt could not install:$missing"
fi

if [ -n "$newer" ]; then
	echo "$me: installing$newer from $backports" >&2
	root=$(mktemp -d)
	conf=$(sh "$here/apt-root.sh" --install "$root" "$backports") ||
		{ sleep 5; conf=$(sh "$here/apt-root.sh" --install "$root" "$backports"); } ||
		die "cannot use $backports (see above); needed for:$newer"
	# Backports has a low priority: its packages are taken only where asked for,
	# so what must come along (libbpf1, QEMU's data) is asked for by the suite.
	# shellcheck disable=SC2086 # a list of package names
	APT_CONFIG=$conf install -t "$backports" $newer ||
		{ sleep 5; APT_CONFIG=$conf install -t "$backports" $newer; } ||
		die "apt could not install from $backports:$newer"
fi
