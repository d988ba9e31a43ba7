#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every reading command: text in 80 columns, JSON that says the same, sums under load.
# lab: --fast-mb 256 --slow-mb 768 --timeout 900 --one-thread
. ./lib.sh

# The most columns that a line of a file has.
widest()
{
	awk '{ if (length($0) > w) w = length($0) } END { print w + 0 }' "$1"
}

# masked FILE: every number is "N", every run of blanks one: what is left is the form.
masked()
{
	sed -E 's/[0-9]+(\.[0-9]+)?/N/g; s/ +/ /g; s/ $//' "$1"
}

# same_form WHAT COMMAND...: the text with its numbers masked is that on stdin.
same_form()
{
	local what=$1
	shift
	cat >"$T_DIR/golden"
	"$@" >"$T_DIR/text" 2>/dev/null
	masked "$T_DIR/text" >"$T_DIR/masked"
	if cmp -s "$T_DIR/golden" "$T_DIR/masked"; then
		ok "$what: its form"
	else
		not_ok "$what: its form"
		diff "$T_DIR/golden" "$T_DIR/masked" | sed 's/^/#   /'
	fi
}

# both PATH COMMAND...: exit 0, at most 80 columns, nothing but JSON with --json, and in
# that JSON the path.
both()
{
	local path=$1
	shift
	runs "$*" tierctl "$@"
	tierctl "$@" >"$T_DIR/text" 2>/dev/null
	holds "$*: stays in 80 columns" "$(widest "$T_DIR/text")" -le 80
	tierctl "$@" --json >"$T_DIR/json" 2>"$T_DIR/err"
	runs "$*: JSON holds $path" jget "$T_DIR/json" "$path"
	is "$(wc -c <"$T_DIR/err")" 0 "$*: nothing on stderr"
}

quick_scans
echo 1 >/sys/kernel/mm/numa/demotion_enabled
machine_state >"$T_DIR/before"

# The workload faults in a child of its own.
child()
{
	awk -v parent="$1" '$4 == parent { print $1 }' /proc/[0-9]*/stat 2>/dev/null
}

# --- without a policy ---
both nodes.node=0.size_bytes topo
both policies.name=fixed.abi_version list
both params.name=hot_threshold_ms.default info fixed
both features.name=vmlinux_btf.available version --features
both state status
both commands.name=load.summary help
for command in load swap set get unload clean reset status stats hist doctor topo list info dump \
	top trace explain metrics daemon config version completion help; do
	tierctl help --json | jget - "commands.name=$command.doc" >/dev/null || {
		note "there is no command $command"
		continue
	}
	tierctl help $command >"$T_DIR/text" && [ "$(widest "$T_DIR/text")" -le 80 ] &&
		grep -q '^Usage' "$T_DIR/text" || not_ok "help $command"
done
runs "--help exits with 0" tierctl stats --help
fails 2 'ambiguous.*status.*stats' "an ambiguous beginning names the candidates" tierctl stat
fails 2 'interval' "a bad value names its option" tierctl stats -i 1x
fails 1 'writing|space' "a full disk is a failure" sh -c 'tierctl topo >/dev/full'
is "$(tierctl nosuch --json | jget - error.class)" usage "a wrong command line is JSON, too"
tierctl metrics >"$T_DIR/metrics"
grep -q '^tier_policy_in_force 0$' "$T_DIR/metrics" && ok "metrics without a policy" ||
	not_ok "metrics without a policy"

# --- with one, under load ---
need "load" tierctl load fixed --set hot_threshold_ms=150
# More than the fast node holds: pages go up and come down, faults never end.
tierload touch --pages 90001 --place slow --pace spin --rate 40000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
wait_for 60 "promotions" counter_over promote_verdicts 1000 || not_ok "promotions come"

both policy status
both nodes.node=0.as_target.faults.hot stats
both pairs.reason=hot.pages stats --by reason
both nodes.node=1.as_source.promote_faults stats --by node
both nodes.node=0.latency_hist.0.pages hist
both params.name=hot_threshold_ms.value get
both words.0 explain "$(child $load)" --window 1s
is "$(tierctl get hot_threshold_ms)" 150 "get NAME prints the bare value"

tierctl stats -i 100ms --count 100 --json >"$T_DIR/readings"
is "$(wc -l <"$T_DIR/readings")" 100 "100 readings under load"
is "$(grep -c '"accounted":true' "$T_DIR/readings")" 100 "the sum holds at each of them"
faults=$(sed -n '1p;$p' "$T_DIR/readings" | while read -r line; do
	echo "$line" | jget - faults_counted; done | tr '\n' ' ')
set -- $faults
holds "faults came meanwhile" "$2" -gt "$1"

same_form "status" sh -c "tierctl status | head -n 9" <<'END'
state active
policy fixed
object /usr/local/lib/tierctl/policy_fixed.bpf.o
attached by tierctl N
since N s
kernel in tiering mode yes
observer yes

Parameters
END
same_form "stats -i" tierctl stats -i 1 --count 1 <<'END'
 FAULTS/s PROMOTE/s REJECT/s KERNEL/s PAGES UP/s DOWN/s FAILED/s SUM OK
 N N N N N N N yes
END

# --- trace ---
timeout -s INT 60 tierctl trace --count 200 --json >"$T_DIR/trace" 2>"$T_DIR/err"
# A last line may tell of lost ones.
is "$(grep -c '"verdict"' "$T_DIR/trace")" 200 "trace: as many decisions as asked for"
worker=$(grep '"command":"tierload"' "$T_DIR/trace" | head -n 1 | jget - pid)
holds "trace: names the process that faults" -n "$worker"
timeout -s INT 60 tierctl trace --count 20 --verdict reject --json >"$T_DIR/trace"
is "$(grep -c '"verdict":"reject"' "$T_DIR/trace")" 20 "trace: only the verdict asked for"
timeout -s INT 60 tierctl trace --count 20 --reason hot --pid "$worker" --json >"$T_DIR/trace"
is "$(grep -c '"reason":"hot"' "$T_DIR/trace")" 20 "trace: only the reason asked for"
timeout -s INT 2 tierctl trace --pid 1 >"$T_DIR/trace" 2>&1
is "$(wc -c <"$T_DIR/trace")" 0 "trace: nothing of a process that has no faults"
fails 2 'nosuch' "trace: an unknown reason" tierctl trace --reason nosuch

# --- metrics ---
tierctl metrics >"$T_DIR/m1"
runs "swap" tierctl swap mru
tierctl metrics --listen 9464 2>/dev/null &
server=$!
wait_for 10 "the server" wget -qO "$T_DIR/m2" http://127.0.0.1:9464/metrics
is "$(wget -qO- http://127.0.0.1:9464/nosuch 2>&1 | grep -c 404)" 1 "another page is not there"
kill $server
wait $server
is $? 0 "the server ends cleanly"
is "$(tail -n 1 "$T_DIR/m1")" "# EOF" "OpenMetrics text is complete"
awk '/^# TYPE/ { type[$3] = $4; next }
	/^#/ { next }
	{ name = $1; sub(/[{].*/, "", name); base = name; sub(/_(total|bucket|info)$/, "", base)
	  if (!(base in type) && !(name in type)) { print "undeclared", name; bad = 1 } }
	END { exit bad }' "$T_DIR/m1" && ok "every sample has a type" || not_ok "every sample has a type"
awk '/^#/ || $1 !~ /_total/ { next } FNR == NR { old[$1] = $2; next }
	($1 in old) && $2 + 0 < old[$1] + 0 { print $1, old[$1], $2; bad = 1 }
	END { exit bad }' "$T_DIR/m1" "$T_DIR/m2" && ok "no counter goes back over a swap" ||
	not_ok "no counter goes back over a swap"
runs "textfile" tierctl metrics --textfile "$T_DIR/tier.prom"
grep -q '^# TYPE tier_decided_faults_total counter' "$T_DIR/tier.prom" &&
	ok "the textfile is in the older format" || not_ok "the textfile is in the older format"

# --- reset ---
before=$(tierctl stats --json | jget - faults_counted)
runs "reset" tierctl reset
after=$(tierctl stats --json | jget - faults_counted)
holds "reset: counters begin anew" "$after" -lt "$before"
is "$(tierctl stats --json | jget - accounted)" true "reset: the sum holds after it"

# --- swap on probation ---
runs "back to fixed" tierctl swap fixed --set hot_threshold_ms=77
fails 5 'fixed is back.*eject' "a policy that is ejected in probation goes" \
	tierctl swap ./bad_verdict.bpf.o --probation 20s
is "$(cat $MODULE_SYSFS/policy)" fixed "the old one is back"
is "$(tierctl get hot_threshold_ms)" 77 "with its parameters"
# Whether one that promotes much thrashes here depends on what else fills the fast node; and
# one that promotes nothing stays only where the old one did not promote either.
runs "a policy that promotes nothing" tierctl set hot_threshold_ms=0
runs "one that does no harm stays" tierctl swap fixed --set hot_threshold_ms=0 \
	--set rate_limit_mbps=79 --probation 3s
is "$(tierctl get rate_limit_mbps)" 79 "it is in force"

# --- dump, status as input ---
runs "back to fixed" tierctl swap fixed --set hot_threshold_ms=78
echo 'quiet memmap=8G!16G crashkernel=64M@16M earlycon=uart,mmio32,0xfe0c9000 mem=4G' >"$T_DIR/words"
mount --bind "$T_DIR/words" /proc/cmdline || bail "cannot put another command line in place"
(cd "$T_DIR" && tierctl dump -o d.tar.gz >/dev/null && tar xzf d.tar.gz)
umount /proc/cmdline
is "$(cat "$T_DIR"/tierctl-dump-*/cmdline.txt)" \
	'quiet memmap=8G!xxx crashkernel=64M@xxx earlycon=uart,mmio32,0xxxxxxxxx mem=4G' \
	"dump masks the addresses of the command line"
is "$(grep -rlE 'start_pfn|ffff[0-9a-f]{8}' "$T_DIR"/tierctl-dump-*)" "" \
	"and holds no other"
is "$(jget "$T_DIR"/tierctl-dump-*/stats.json policy)" fixed "dump holds the statistics"
fails 1 'exist' "dump overwrites nothing" tierctl dump -o "$T_DIR/d.tar.gz"
tierctl status --json >"$T_DIR/status.json"
kill $load
wait $load
runs "unload" tierctl unload
runs "load from a saved status" tierctl load "$T_DIR/status.json"
is "$(tierctl get hot_threshold_ms)" 78 "with the parameters that it had"
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
done_testing
