#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# run.sh [OPTION]... [-- ARGUMENT...]: boot a machine with memory tiers under QEMU.
#
#   --kernel NAME    one of kernels.list (default: its first line)
#   --bzimage FILE   boot this image instead (with --modules DIR if it has modules)
#   --modules DIR    lib/modules/RELEASE of --bzimage
#   --root DIR       installed tree (`make install DESTDIR=DIR`) for the guest
#   --run SCRIPT     run this as root in the guest, with the arguments given after
#                    --, and exit with its status; without it: a shell
#                    on this terminal (leave with exit, or Ctrl-A x)
#   --file FILE      file or directory to put beside the script; may be given again
#   --env NAME=VALUE environment of the script; may be given again
#   --out DIR        what the script leaves in the directory $OUT comes back here
#   --fast-mb N      memory of each fast node in MiB (default 512)
#   --slow-mb N      memory of the slow node in MiB (default 1536)
#   --cpus N         CPUs, spread evenly over the fast nodes (default 2)
#   --nodes SHAPE    2tier       fast node with the CPUs, slow node without (default)
#                    1node       one node of fast + slow size
#                    1tier       two nodes with CPUs, both fast
#                    2fast1slow  two fast nodes with CPUs, one slow node
#   --one-thread     all CPUs on one host thread: slower, and safe where the guest patches
#                    BPF programs that another CPU runs, which QEMU's threads may race
#   --icount         one CPU, one instruction = 1 ns: repeatable counts
#   --timeout S      give up after S seconds (default 300; a shell: never)
#   --append WORDS   more words for the kernel's command line
#   --bpffs          mount bpffs in the guest before the script
#   --verbose        show the kernel's messages on stderr as they come
#
# The script sees LAB_KERNEL, LAB_NODES, LAB_FAST_MB, LAB_SLOW_MB, LAB_CPUS and
# LAB_ICOUNT. Its standard output and error come to stdout as they are written.
#
# Exit: the script's status; 124 timeout; 125 no verdict from the guest, or the lab
# itself failed; 126 the guest's kernel panicked or reported a bug of its own; 2
# usage. The kernel's log is kept in build/lab/ when anything fails.
# shellcheck disable=SC2054 # QEMU's options are full of commas
set -euo pipefail

me=run.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

say()
{
	echo "$me: $*" >&2
}

usage()
{
	say "$*; try --help"
	exit 2
}

# number OPTION VALUE LOWEST
number()
{
	[[ $2 =~ ^[0-9]{1,7}$ ]] && [ "$2" -ge "$3" ] ||
		usage "$1 takes a whole number from $3 up, not '$2'"
}

kernel='' bzimage='' modules='' root='' script='' out='' append='' seconds=''
fast_mb=512 slow_mb=1536 cpus=2 nodes=2tier icount=0 bpffs=0 verbose=0 threads=multi
files=() envs=()
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) sed -n '3,/^set -/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | grep -v ^shellcheck; exit 0 ;;
	--) shift; break ;;
	--icount) icount=1; shift; continue ;;
	--one-thread) threads=single; shift; continue ;;
	--bpffs) bpffs=1; shift; continue ;;
	--verbose) verbose=1; shift; continue ;;
	--kernel | --bzimage | --modules | --root | --run | --file | --env | --out | --fast-mb | \
	--slow-mb | --cpus | --nodes | --timeout | --append)
		[ $# -ge 2 ] || usage "option '$1' needs a value" ;;
	*) usage "unknown argument '$1'" ;;
	esac
	case $1 in
	--kernel) kernel=$2 ;;
	--bzimage) bzimage=$2 ;;
	--modules) modules=$2 ;;
	--root) root=$2 ;;
	--run) script=$2 ;;
	--file) files+=("$2") ;;
	--env)
		[[ $2 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] || usage "--env takes NAME=VALUE, not '$2'"
		envs+=("$2") ;;
	--out) out=$2 ;;
	--fast-mb) number "$1" "$2" 128; fast_mb=$2 ;;
	--slow-mb) number "$1" "$2" 64; slow_mb=$2 ;;
	--cpus) number "$1" "$2" 1; cpus=$2 ;;
	--nodes) nodes=$2 ;;
	--timeout) number "$1" "$2" 1; seconds=$2 ;;
	--append) append=$2 ;;
	esac
	shift 2
done
args=("$@")
[ -n "$script" ] || [ ${#args[@]} = 0 ] || usage "arguments after -- are for --run"
[ -z "$script" ] || [ -f "$script" ] || usage "--run: no file '$script'"
[ "$icount" = 0 ] || cpus=1
if [ -z "$script" ] && ! { [ -t 0 ] && [ -t 1 ]; }; then
	usage "a shell needs a terminal; name a script with --run"
fi
qemu=$(command -v qemu-system-x86_64) || {
	say "no qemu-system-x86_64; run scripts/deps.sh lab"
	exit 125
}
# Older ones corrupt user programs once hint faults happen.
version=$("$qemu" --version | sed -n '1s/.*version \([0-9]*\).*/\1/p')
if [ "${version:-0}" -lt 10 ]; then
	say "QEMU $version is too old, 10 or later is needed; run scripts/deps.sh lab"
	exit 125
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/tierlab.XXXXXX")
terminal=''
helpers=()
cleanup()
{
	local status=$?
	trap - EXIT
	[ ${#helpers[@]} = 0 ] || kill "${helpers[@]}" 2>/dev/null || :
	[ -z "$terminal" ] || stty "$terminal" 2>/dev/null || :
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# --- the kernel and its root -------------------------------------------------

release=''
loads=()
if [ -n "$bzimage" ]; then
	[ -r "$bzimage" ] || usage "--bzimage: cannot read '$bzimage'"
	kernel=${kernel:-$(basename "$bzimage")}
	vmlinuz=$bzimage
else
	"$here/fetch.sh" ${kernel:+"$kernel"} >"$work/kernel" || {
		status=$?
		[ "$status" = 2 ] || status=125
		exit "$status"
	}
	# shellcheck source=/dev/null # made by fetch.sh
	. "$work/kernel"
	vmlinuz=$VMLINUZ modules=$MODULES release=$RELEASE
	kernel=$NAME
fi

{
	printf '%s=%q\n' LAB_KERNEL "$kernel" LAB_NODES "$nodes" LAB_FAST_MB "$fast_mb" \
		LAB_SLOW_MB "$slow_mb" LAB_CPUS "$cpus" LAB_ICOUNT "$icount" LAB_BPFFS "$bpffs" \
		LAB_SCRIPT "${script:+$(basename "$script")}"
	quoted=
	for arg in ${args[@]+"${args[@]}"}; do
		quoted+=" '${arg//\'/\'\\\'\'}'"
	done
	# Evaluated once more by init, word for word.
	printf "LAB_ARGS='%s'\n" "${quoted//\'/\'\\\'\'}"
	for pair in ${envs[@]+"${envs[@]}"}; do
		value=${pair#*=}
		printf "%s='%s'\n" "${pair%%=*}" "${value//\'/\'\\\'\'}"
	done
	if [ -z "$script" ]; then
		read -r rows columns < <(stty size) || { rows=24 columns=80; }
		printf '%s=%q\n' LAB_ROWS "$rows" LAB_COLUMNS "$columns" TERM "${TERM:-vt100}"
	fi
} >"$work/conf"

image=(-o "$work/root.cpio" --conf "$work/conf")
[ -z "$modules" ] || image+=(--modules "$modules")
[ -z "$root" ] || image+=(--root "$root")
[ -z "$script" ] || image+=(--script "$script")
for file in ${files[@]+"${files[@]}"}; do
	image+=(--file "$file")
done
for name in ${loads[@]+"${loads[@]}"}; do
	image+=(--load "$name")
done
"$here/mkinitramfs.sh" "${image[@]}" || exit 125

# --- the machine -------------------------------------------------------------

machine=(-machine q35,hmat=on -cpu Nehalem,+rdrand -nodefaults -no-user-config
	-display none -vga none -no-reboot -rtc base=utc)
memory_mb=0
node=0
numa=()

# node SIZE_MB [CPUS]: one more node; no CPUs: its memory hangs on node 0.
node()
{
	numa+=(-object "memory-backend-ram,id=mem$node,size=$1M")
	if [ $# -gt 1 ]; then
		numa+=(-numa "node,nodeid=$node,memdev=mem$node,cpus=$2")
	else
		numa+=(-numa "node,nodeid=$node,memdev=mem$node,initiator=0")
	fi
	memory_mb=$((memory_mb + $1))
	node=$((node + 1))
}

# speed FROM TO LATENCY_NS BANDWIDTH_MBPS
speed()
{
	numa+=(-numa "hmat-lb,initiator=$1,target=$2,hierarchy=memory,data-type=access-latency,latency=$3"
		-numa "hmat-lb,initiator=$1,target=$2,hierarchy=memory,data-type=access-bandwidth,bandwidth=$4M")
}

distance()
{
	numa+=(-numa "dist,src=$1,dst=$2,val=$3" -numa "dist,src=$2,dst=$1,val=$3")
}

cpu_nodes=1
case $nodes in
1tier | 2fast1slow)
	cpu_nodes=2
	[ "$icount" = 0 ] || usage "--icount has one CPU, shape $nodes needs two"
	[ $((cpus % 2)) = 0 ] || usage "--nodes $nodes spreads the CPUs over two nodes: an even number of --cpus"
	;;
esac
half=$((cpus / 2))
case $nodes in
2tier)
	node "$fast_mb" "0-$((cpus - 1))"
	node "$slow_mb"
	distance 0 1 20
	speed 0 0 100 25600; speed 0 1 250 10240
	;;
1node)
	node $((fast_mb + slow_mb)) "0-$((cpus - 1))"
	speed 0 0 100 25600
	;;
1tier)
	node "$fast_mb" "0-$((half - 1))"
	node "$slow_mb" "$half-$((cpus - 1))"
	distance 0 1 20
	speed 0 0 100 25600; speed 0 1 140 25600
	speed 1 0 140 25600; speed 1 1 100 25600
	;;
2fast1slow)
	node "$fast_mb" "0-$((half - 1))"
	node "$fast_mb" "$half-$((cpus - 1))"
	node "$slow_mb"
	distance 0 1 20; distance 0 2 30; distance 1 2 30
	speed 0 0 100 25600; speed 0 1 140 25600; speed 0 2 250 10240
	speed 1 0 140 25600; speed 1 1 100 25600; speed 1 2 250 10240
	;;
*) usage "--nodes takes 2tier, 1node, 1tier or 2fast1slow, not '$nodes'" ;;
esac
machine+=(-m "${memory_mb}M" -smp "$cpus,sockets=$cpu_nodes" "${numa[@]}")

# tsc=reliable: the emulated counter is one for all CPUs, but the kernel's watchdog
# compares it with timers that lag on a busy host, and would give it up.
# mitigations=off: page-table isolation flushes the emulated TLB at each system
# call. Instruction counts of a stock configuration: --append mitigations=auto.
cmdline="console=ttyS0 panic=-1 oops=panic tsc=reliable mitigations=off"
if [ "$icount" = 1 ]; then
	machine+=(-accel tcg,thread=single -icount shift=0,sleep=off -seed 1)
	cmdline+=" nokaslr"
else
	machine+=(-accel "tcg,thread=$threads")
fi
cmdline+="${append:+ $append}"

log=$work/kernel.log
: >"$log"
machine+=(-kernel "$vmlinuz" -initrd "$work/root.cpio" -append "$cmdline"
	-chardev "file,id=log,path=$log" -serial chardev:log
	-device virtio-serial-pci
	-chardev "file,id=verdict,path=$work/verdict"
	-device virtserialport,nr=1,chardev=verdict,name=tierlab.verdict
	-chardev "file,id=files,path=$work/files.tar"
	-device virtserialport,nr=2,chardev=files,name=tierlab.files)

# --- the run -----------------------------------------------------------------

if [ "$verbose" = 1 ]; then
	tail -F -q "$log" >&2 2>/dev/null &
	helpers+=($!)
fi

# QEMU dies with this shell, however that ends.
guard=(setpriv --pdeathsig TERM)
status=0
if [ -n "$script" ]; then
	# Through cat: QEMU makes what it writes to non-blocking, and if that were our
	# stdout, so it would be for everyone who shares it.
	# Held open here, so that cat ends even if QEMU never comes to open it.
	mkfifo "$work/pipe"
	exec 7<>"$work/pipe"
	cat <"$work/pipe" 7>&- &
	pump=$!
	helpers+=("$pump")
	"${guard[@]}" timeout --foreground -k 5 "${seconds:-300}" "$qemu" "${machine[@]}" \
		-chardev "file,id=out,path=$work/pipe" \
		-device virtserialport,nr=3,chardev=out,name=tierlab.out \
		</dev/null >/dev/null 2>"$work/qemu.err" 7>&- &
	machine_pid=$!
	helpers+=("$machine_pid")
	wait "$machine_pid" || status=$?
	exec 7>&-
	wait "$pump" || :
else
	terminal=$(stty -g)
	mkfifo "$work/size.in" "$work/size.out"
	(
		exec >"$work/size.in"
		last="$rows $columns"
		while sleep 1; do
			size=$(stty size </dev/tty) || exit 0
			[ "$size" = "$last" ] || echo "$size"
			last=$size
		done
	) &
	helpers+=($!)
	say "Linux ${release:-$kernel}, booting; leave with exit or Ctrl-A x"
	"${guard[@]}" ${seconds:+timeout --foreground -k 5 "$seconds"} "$qemu" "${machine[@]}" \
		-chardev stdio,id=con,mux=on,signal=off -mon chardev=con \
		-device virtconsole,nr=0,chardev=con \
		-chardev "pipe,id=size,path=$work/size" \
		-device virtserialport,nr=3,chardev=size,name=tierlab.winsize \
		2>"$work/qemu.err" || status=$?
	stty "$terminal"
fi

# --- the verdict -------------------------------------------------------------

# fail STATUS WHAT...: say it with the end of the kernel's log, keep the log.
fail()
{
	local code=$1 kept
	shift
	mkdir -p "$top/build/lab"
	kept=$top/build/lab/$(basename "${script:-shell}").$$.log
	cp "$log" "$kept"
	# The newest twenty are enough.
	find "$top/build/lab" -maxdepth 1 -name '*.log' -printf '%T@ %p\n' | sort -rn |
		sed -e '1,20d' -e 's/^[^ ]* //' | tr '\n' '\0' | xargs -0 -r rm -f
	say "$*"
	if [ -s "$work/qemu.err" ]; then
		sed 's/^/  qemu: /' "$work/qemu.err" >&2
	fi
	if [ "$code" -ge 124 ]; then
		# The first complaint is the cause; what follows is often further than a tail.
		grep -a -m 1 -E '(BUG|Oops|WARNING|int3|general protection fault)[:,] ' "$log" |
			tr -d '\r' | sed 's/^/  kernel: /' >&2 || :
		tail -n 25 "$log" | tr -d '\r' | sed 's/^/  kernel: /' >&2
	fi
	say "kernel log kept in ${kept#"$PWD"/}"
	exit "$code"
}

if grep -aq 'Kernel panic - not syncing' "$log"; then
	fail 126 "the guest's kernel panicked: $(grep -a -m1 'Kernel panic - not syncing' "$log" | tr -d '\r')"
fi
if [ "$status" = 124 ] || [ "$status" = 137 ]; then
	fail 124 "no end after ${seconds:-300} s, machine stopped"
fi
[ "$status" = 0 ] || fail 125 "QEMU failed with status $status"

verdict=$(cat "$work/verdict" 2>/dev/null || :)
# Ctrl-A x or poweroff is a way to leave a shell.
[ -n "$script$verdict" ] || exit 0
[[ $verdict =~ ^exit\ ([0-9]{1,3})$ ]] ||
	fail 125 "the guest ended without a verdict${verdict:+ (sent '$verdict')}"
code=${BASH_REMATCH[1]}

# What a busy host alone can cause (lockups, stalls) is not held against the guest.
complaint=$(grep -a -E '(WARNING|BUG|KASAN|UBSAN): ' "$log" | tr -d '\r' |
	grep -v -E 'soft lockup|workqueue lockup' | head -n 1) || :
if [ -n "$complaint" ] && [ -n "$script" ]; then
	fail 126 "the guest's kernel reported: $complaint (the script's status was $code)"
fi

if [ -n "$out" ]; then
	mkdir -p "$out"
	tar -C "$out" --no-same-owner -xf "$work/files.tar" ||
		fail 125 "the files of the guest's \$OUT did not come back whole"
fi
if [ -n "$script" ] && [ "$code" != 0 ]; then
	fail "$code" "$(basename "$script") exited with status $code"
fi
exit "$code"
