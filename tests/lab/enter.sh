#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# enter.sh TREE COMMAND...: run a command with the programs and libraries of an
# unpacked Debian release (see fetch.sh, kernels with tools of their own), on the
# files of this machine, in this directory. No root rights: a user namespace.
#
# Exit: the command's status; 125 if the tree cannot be entered.
set -eu

[ $# -ge 2 ] || { echo "usage: enter.sh TREE COMMAND..." >&2; exit 2; }

if [ "${TIER_ENTERED:-}" != "$1" ]; then
	tree=$(cd "$1" && pwd -P)
	shift
	if ! unshare --user --map-root-user --mount true 2>/dev/null; then
		echo "enter.sh: this machine gives no user namespaces to user $(id -un)" \
			"(see sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone);" \
			"run as root" >&2
		exit 125
	fi
	TIER_ENTERED=$tree exec unshare --user --map-root-user --mount sh "$0" "$tree" "$@"
fi

# In the namespace: all of this machine that the tree has not of its own.
tree=$1
shift
here=$(pwd -P)
for dir in /*; do
	name=${dir#/}
	case $name in
	usr | bin | sbin | lib* | etc | var | lost+found) continue ;;
	esac
	[ -d "$dir" ] && [ ! -L "$dir" ] || continue
	mkdir -p "$tree/$name"
	mount --rbind "$dir" "$tree/$name" ||
		{ echo "enter.sh: cannot show $dir inside" >&2; exit 125; }
done
unset TIER_ENTERED
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck disable=SC2016 # expanded inside
exec chroot "$tree" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$here" "$@"
