#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# docs/writing-a-policy.md, followed by a program: what it shows builds, and replays as it says.
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${TIER_BUILD:-$top/build}
guide=$top/docs/writing-a-policy.md
tierctl=$build/user/tierctl
export TIER_BPF_DIR=$build/bpf
work=$(mktemp -d "${TMPDIR:-/tmp}/tierguide.XXXXXX")
trap 'rm -rf "$work"' EXIT
nr=0 bad=0

# exits STATUS WHAT COMMAND...: the command ends with that status; $work/said has its words.
exits()
{
	local want=$1 what=$2 status=0
	shift 2
	nr=$((nr + 1))
	"$@" >"$work/said" 2>&1 || status=$?
	if [ "$status" = "$want" ]; then
		echo "ok $nr - $what"
	else
		bad=$((bad + 1))
		echo "not ok $nr - $what (exit status $status)"
		sed 's/^/#   /' "$work/said" | tail -n 20
	fi
}

compile()
{
	"$clang" -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_x86 -I"$top/include" -I"$top" \
		-Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function \
		-c "$1.bpf.c" -o "$1.bpf.o"
}

# excerpt_of FILE WHOLE: all lines of FILE are in WHOLE, in that order, indentation aside.
excerpt_of()
{
	local strangers
	strangers=$(diff <(sed 's/^[[:space:]]*//; /^$/d' "$1") \
		<(sed 's/^[[:space:]]*//; /^$/d' "$2") | grep '^<')
	echo "$strangers"
	[ -s "$1" ] && [ -z "$strangers" ]
}

if [ "$(id -u)" != 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
	echo "1..0 # SKIP replay needs root and a kernel with BTF"
	exit 0
fi
for clang in clang-19 clang-20 clang-21 clang; do
	! command -v "$clang" >/dev/null || break
done

# Whole programs go to NAME.bpf.c; C and faults that follow, or are in a section
# "`NAME`", to NAME.part and NAME.json.
cd "$work" || exit 1
awk '
	/^## / && match($0, /`[a-z]+`/) { name = substr($0, RSTART + 1, RLENGTH - 2) }
	/^```/ && !kind { kind = substr($0, 4); if (!kind) kind = "text"; text = ""; next }
	/^```/ {
		if (kind == "c" && text ~ /#include <tier\/policy/) {
			name = text
			sub(/.*TIER_POLICY\(/, "", name)
			sub(/,.*/, "", name)
			printf "%s", text >(name ".bpf.c")
		} else if (kind == "c" && name) {
			printf "%s", text >(name ".part")
		} else if (kind == "json") {
			printf "%s", text >(name ".json")
		}
		kind = ""
		next
	}
	kind { text = text $0 "\n" }' "$guide"

for file in *.bpf.c; do
	exits 0 "$file builds without a warning" compile "${file%.bpf.c}"
	exits 0 "there are faults for $file" test -s "${file%.bpf.c}.json"
done
for file in *.json; do
	name=${file%.json}
	policy=$name
	[ ! -e "$name.bpf.c" ] || policy=./$name.bpf.o
	exits 0 "$name decides as the guide says" "$tierctl" replay "$policy" "$file"
	sed '1s/"expect":"[a-z]*"/"expect":"full"/' "$file" >wrong.json
	exits 1 "a wrong expectation of $name is a failure" "$tierctl" replay "$policy" wrong.json
done
rm wrong.json
exits 0 "there are two programs, three fault files and the policy line by line" \
	test "$(echo *.bpf.c *.json twotouch.part)" = \
	"elastic.bpf.c myname.bpf.c elastic.json myname.json twotouch.json twotouch.part"
exits 0 "the guide's lines of twotouch are those of the policy" \
	excerpt_of twotouch.part "$top/bpf/policy_twotouch.bpf.c"

printf '%s\n' '{"latency_ms":4000,"room":true,"expect":"room"}' \
	'{"now_ms":5000,"room":false,"expect":"cold"}' >flags.json
exits 0 "a fault can take back the flag of the line before" "$tierctl" replay mainline flags.json

sed 's/return f->/return tier_node(f)->reference_ms + f->/' myname.bpf.c >unsafe.bpf.c
exits 0 "a program without its test for NULL builds" compile unsafe
exits 1 "the verifier refuses it" "$tierctl" replay ./unsafe.bpf.o myname.json
cp said refusal
exits 0 "the message names the program and the reason" grep -q \
	'program myname_replay of .* refused it: R[0-9]* invalid mem access' refusal

echo "1..$nr"
[ "$bad" = 0 ]
