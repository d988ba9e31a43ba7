#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The rooms of docs/architecture.md: includes flow one way, code depends on a kernel
# version in the compat files only, generated pages are what their generator prints.
set -u

build=${TIER_BUILD:-build}
n=0 failed=0

check()
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | head -n 10 | sed 's/^/# /'
		failed=1
	fi
}

# includes FILES...: "file:line:#include ..." of them all.
includes()
{
	grep -rnE '^[[:space:]]*#[[:space:]]*include' "$@"
}

check "there are includes to judge" "$([ "$(includes include kmod bpf user | wc -l)" -gt 300 ] || echo too few)"
check "contracts know nobody" \
	"$(includes include/tier | grep -vE '(<tier/[a-z_.]+>|"vmlinux.h"|<bpf/bpf_[a-z_]+\.h>)$')"
check "contracts for all sides know nothing of BPF" \
	"$(includes include/tier | grep -v '\.bpf\.h:' | grep -vE '<tier/[a-z_.]+>$' | grep -v '\.bpf\.h')"
check "the module knows include/tier only, and nothing of BPF's side" \
	"$(includes kmod | grep -vE '<(linux|asm)/|"internal.h"|"compat.h"|<tier/(abi|ops)\.h>|<tier/(stats|decisions)\.def>')"
check "a policy includes the kit and arithmetic" \
	"$(includes bpf/policy_*.bpf.c | grep -vE '<tier/[a-z_.]+>$')"
check "BPF knows neither module nor user space" \
	"$(includes bpf | grep -E 'kmod|user|libtier')"
check "only libtier knows libbpf" \
	"$(includes user include/libtier.h | grep -v '^user/libtier/' | grep -E '<bpf/')"
check "libtier knows no renderer and no command" \
	"$(includes user/libtier | grep -E 'out/|opts\.h|tierctl\.h|emit\.h')"
check "renderers know neither libtier nor commands" \
	"$(includes user/out | grep -E 'libtier|opts\.h|tierctl\.h|emit\.h')"
check "user space sees no BPF header of ours and no struct_ops type" \
	"$(includes user | grep -E '\.bpf\.h|tier/ops\.h|vmlinux\.h')"
check "libtier does not print" \
	"$(grep -rnE '[^a-z_](printf|puts|putchar|perror)\(|fprintf\(std(out|err)' user/libtier --include='*.c')"
check "code depends on a kernel version in the compat files only" \
	"$(grep -rnE 'LINUX_VERSION_CODE|KERNEL_VERSION\(|LINUX_KERNEL_VERSION' include kmod bpf user |
		grep -vE '^(kmod/compat\.h|include/tier/compat\.bpf\.h|user/libtier/feature\.c):')"
check "no policy has code in user space" "$(ls user/*policy_*.c 2>/dev/null)"
check "every policy fits 200 lines" \
	"$(wc -l bpf/policy_*.bpf.c | awk '$2 != "total" && $1 >= 200 { print $2, $1 }')"
check "docs/counters.md is what tierctl prints (make docs)" \
	"$("$build/user/tierctl" help --counters | diff docs/counters.md - 2>&1)"
echo "1..$n"
exit $failed
