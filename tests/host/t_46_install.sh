#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make install and uninstall: the documented files, whole and in place; then nothing.
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${TIER_BUILD:-$top/build}
dest=$(mktemp -d "${TMPDIR:-/tmp}/tierinstall.XXXXXX")
trap 'rm -rf "$dest"' EXIT
nr=0 bad=0

# check WHAT COMMAND...: the command succeeds; its output is shown if not.
check()
{
	local what=$1
	shift
	nr=$((nr + 1))
	if "$@" >"$dest.out" 2>&1; then
		echo "ok $nr - $what"
	else
		bad=$((bad + 1))
		echo "not ok $nr - $what"
		sed 's/^/#   /' "$dest.out" | tail -n 20
	fi
	rm -f "$dest.out"
}

# run_make TARGET [VARIABLE=VALUE]...: O by the environment, as the caller's make may have its own.
run_make()
{
	env -u MAKEFLAGS -u MAKELEVEL O="$build" make -C "$top" "$@"
}

empty()
{
	[ -z "$1" ] || { echo "$1"; false; }
}

prefix_is()
{
	local prefix=$1 root=$dest/$2 tierctl file
	local release=0.0-test
	# A module as if it had been built for that kernel: install only copies it.
	mkdir -p "$build/kmod/$release"
	echo module >"$build/kmod/$release/tier_policy.ko"
	check "make install PREFIX=$prefix" run_make install DESTDIR="$root" PREFIX="$prefix" KREL=$release
	tierctl=$root$prefix/sbin/tierctl
	for file in "$prefix/sbin/tierctl" "$prefix/lib/tierctl/policy_fixed.bpf.o" \
		"$prefix/lib/tierctl/policy_mainline.bpf.o" "$prefix/lib/tierctl/trace.bpf.o" \
		"$prefix/include/tier/policy.bpf.h" "$prefix/include/tier/vmlinux.h" \
		"$prefix/share/man/man8/tierctl.8" "$prefix/share/bash-completion/completions/tierctl" \
		"$prefix/share/zsh/site-functions/_tierctl" "$prefix/lib/systemd/system/tierctl.service" \
		"/lib/modules/$release/updates/tier_policy.ko"; do
		check "there is $file" test -s "$root$file"
	done
	check "every policy of the tree is installed" empty "$(comm -3 \
		<(cd "$top/bpf" && ls -- *.bpf.c | sed 's/c$/o/') \
		<(cd "$root$prefix/lib/tierctl" && ls -- *.bpf.o))"
	check "nobody but the owner may write to any of it" empty "$(find "$root" ! -type l -perm /022)"
	check "the installed tierctl finds the installed policies" sh -c \
		"env -u TIERCTL_POLICY_PATH '$tierctl' list --json | grep -q '$root$prefix/lib/tierctl/policy_fixed'"
	check "bash reads the completion" bash -n "$root$prefix/share/bash-completion/completions/tierctl"
	check "completion offers commands" completes "$root$prefix/share/bash-completion/completions/tierctl" \
		"tierctl sta" status
	check "completion offers options" completes "$root$prefix/share/bash-completion/completions/tierctl" \
		"tierctl stats --int" --interval
	check "completion offers reasons" completes "$root$prefix/share/bash-completion/completions/tierctl" \
		"tierctl trace --reason ra" rate
	check "completion offers policies and nothing else of list" offers_policies \
		"$root$prefix/share/bash-completion/completions/tierctl" "$root$prefix/lib/tierctl"
	! command -v zsh >/dev/null || check "zsh reads the completion" \
		zsh -n "$root$prefix/share/zsh/site-functions/_tierctl"
	check "the man page names every command" names_commands "$tierctl" \
		"$root$prefix/share/man/man8/tierctl.8"
	check "no placeholder is left in the unit" empty \
		"$(grep -n '@[A-Z]*@' "$root$prefix/lib/systemd/system/tierctl.service")"
	check "the unit starts the installed tierctl" grep -q "^ExecStart=$prefix/sbin/tierctl " \
		"$root$prefix/lib/systemd/system/tierctl.service"
	check "systemd has nothing against the unit" unit_is_good "$tierctl" "$prefix" \
		"$root$prefix/lib/systemd/system/tierctl.service"
	check "a second install goes over the first" run_make install DESTDIR="$root" PREFIX="$prefix" \
		KREL=$release
	check "make uninstall" run_make uninstall DESTDIR="$root" PREFIX="$prefix" KREL=$release
	# The configuration is the operator's once it is there.
	check "uninstall leaves no file but the configuration" empty \
		"$(find "$root" ! -type d ! -path "$root/etc/tierctl.conf")"
	check "uninstall leaves no directory of ours" empty "$(find "$root" -type d \( -name tierctl -o -path '*/include/tier' \))"
	rm -rf "$build/kmod/$release"
}

# unit_is_good TIERCTL PREFIX UNIT: systemd takes every line, and a wrong one would be seen. The
# unit names the program where it will lie, which is not below DESTDIR.
unit_is_good()
{
	local unit=$dest/verify/tierctl.service said
	command -v systemd-analyze >/dev/null || { echo "no systemd-analyze: not judged"; return 0; }
	mkdir -p "${unit%/*}"
	sed "s|$2/sbin/tierctl|$1|" "$3" >"$unit"
	said=$(systemd-analyze verify --man=no "$unit" 2>&1)
	case $said in *'initialize manager'*) echo "systemd-analyze does not run here"; return 0 ;; esac
	said=$(grep tierctl <<<"$said")
	empty "$said" || return
	sed 's/^LockPersonality=/LockPersonalty=/' "$unit" >"$unit.new" && mv "$unit.new" "$unit"
	systemd-analyze verify --man=no "$unit" 2>&1 | grep -q 'LockPersonalty' ||
		{ echo "a misspelt key is not seen"; false; }
}

# completes FILE "WORDS" WANTED: the completion of the last word offers it.
completes()
{
	bash --norc -c '
		. "$1"
		read -ra COMP_WORDS <<<"$2"
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		COMPREPLY=()
		_tierctl
		printf "%s\n" "${COMPREPLY[@]}"
		printf "%s\n" "${COMPREPLY[@]}" | grep -qx -e "$3 \?"' completes "$@"
}

# offers_policies FILE DIRECTORY: the policies that list names are those of the directory,
# also when it says what is in force above them.
offers_policies()
{
	bash --norc -c '
		. "$1"
		tierctl()
		{
			printf "in force     fixed\nattached by  tierctl 12\n\n"
			printf "POLICY  IN FORCE  OPS  OBJECT\n"
			for object in "$dir"/policy_*.bpf.o; do
				name=${object##*/policy_}
				printf "%s  no  promote  %s\n        continued\n" "${name%.bpf.o}" "$object"
			done
		}
		dir=$2
		diff <(_tierctl_policies | sort) \
			<(cd "$2" && ls policy_*.bpf.o | sed "s/policy_//; s/\.bpf\.o//" | sort)' \
		offers_policies "$@"
}

names_commands()
{
	local missing='' name names
	# Only commands have arguments after their names; options do not.
	names=$("$1" help --json | awk -F'"' '/^      "name"/ { name = $4 } /^      "args"/ { print name }')
	[ "$(wc -w <<<"$names")" -gt 20 ] || { echo "only these commands: $names"; return 1; }
	for name in $names; do
		grep -q "tierctl.*$name\|^\.SS.*$name\|fB$name" "$2" || missing+=" $name"
	done
	empty "$missing"
}

prefix_is /usr/local a
prefix_is /opt/tier b
check "an operator's configuration is not written over" sh -c "
	mkdir -p '$dest/c/etc' && echo '# mine' >'$dest/c/etc/tierctl.conf' &&
	O='$build' MAKEFLAGS= make -s -C '$top' install DESTDIR='$dest/c' KREL=none &&
	[ \"\$(cat '$dest/c/etc/tierctl.conf')\" = '# mine' ]"
echo "1..$nr"
[ "$bad" = 0 ]
