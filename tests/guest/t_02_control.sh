#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The control policy, which leaves every decision to the kernel, changes nothing.
#
# Three runs without us and three with `kernel` loaded, same seeds, who goes first
# alternating: settled hit ratio, promotions and candidates of the one lie within the
# spread of the other. Three runs are few: if a median lies outside, three more pairs
# are run, and all six decide.
# lab: --fast-mb 256 --slow-mb 768 --timeout 900
# paced
. ./lib.sh

SECONDS_EACH=15
SLIP_LIMIT=0.15		# share of late batches above which pacing did not hold

tiering_on()
{
	set_knob /proc/sys/kernel/numa_balancing 2
	set_knob /sys/kernel/mm/numa/demotion_enabled 1
}

# one NAME SEED: appends "NAME hit promotions candidates" to the results. A run whose
# pacing the host did not let it hold is another workload: taken again, twice at most.
slipped=0
one()
{
	local before_s before_c tries=3
	while :; do
		before_s=$(vmstat pgpromote_success)
		before_c=$(vmstat pgpromote_candidate)
		tierload hotcold --mib 160 --hot-pages 2048 --rate 30000 --seed "$2" \
			--seconds $SECONDS_EACH --place slow --quiet --json "$T_DIR/run.json" \
			>"$T_DIR/run.out" 2>&1 ||
			{ sed 's/^/# /' "$T_DIR/run.out"; bail "tierload failed"; }
		awk -v s="$(jget "$T_DIR/run.json" totals.slip)" -v l=$SLIP_LIMIT \
			'BEGIN { exit !(s <= l) }' && break
		note "$1, seed $2: pacing slipped ($(jget "$T_DIR/run.json" totals.slip) late)"
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { slipped=1; break; }
	done
	echo "$1 $(jget "$T_DIR/run.json" totals.fast_hit_ratio_final | awk '{ printf "%d", $1 * 1000 }')" \
		"$(($(vmstat pgpromote_success) - before_s))" \
		"$(($(vmstat pgpromote_candidate) - before_c))" | tee -a "$T_DIR/results" | sed 's/^/# /'
}

# fits COLUMN SLACK_PERCENT: prints the figures; succeeds if the median with us lies in
# the spread of the runs without us, widened on both sides by the spread itself and at
# least by that many per cent of the middle.
fits()
{
	awk -v col="$1" -v slack="$2" '
		function sorted(a, n,   i, j, t) {
			for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++)
				if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
		}
		function median(a, n) { return (a[int((n + 1) / 2)] + a[int((n + 2) / 2)]) / 2 }
		$1 == "without" { w[++nw] = $col }
		$1 == "with" { k[++nk] = $col }
		END {
			sorted(w, nw); sorted(k, nk)
			wide = w[nw] - w[1]
			more = median(w, nw) * slack / 100
			if (more < wide) more = wide
			mid = median(k, nk)
			printf "without us %d..%d, with the control %d (median)\n", w[1], w[nw], mid
			exit !(nw >= 3 && nk == nw && mid >= w[1] - more && mid <= w[nw] + more)
		}' "$T_DIR/results"
}

all_fit()
{
	fits 2 4 && fits 3 25 && fits 4 25
}

within()
{
	if [ $slipped = 1 ]; then
		ok "$2 # SKIP the host is too busy to hold the pace: nothing to compare"
	elif fits "$1" "$3" >"$T_DIR/verdict"; then
		ok "$2: $(cat "$T_DIR/verdict")"
	else
		not_ok "$2: $(cat "$T_DIR/verdict")"
	fi
}

with_control()
{
	runs "load the control ($1)" tierctl load kernel
	reading "$T_DIR/a"
	one with "$1"
	reading "$T_DIR/b"
	is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.*')" \
		"$(grown "$T_DIR/a" "$T_DIR/b" module kernel_verdicts)" \
		"every fault was left to the kernel ($1)"
	runs "unload ($1)" tierctl unload
}

quick_scans 1000
tiering_on
for seed in 1 2 3 4 5 6; do
	if [ $seed = 4 ]; then
		[ $slipped = 0 ] && ! all_fit >/dev/null || break
		note "three runs each do not decide it: three more"
	fi
	if [ $((seed % 2)) = 1 ]; then
		one without $seed
		with_control $seed
	else
		with_control $seed
		one without $seed
	fi
done
within 2 "settled hit ratio (per mille)" 4
within 3 "promotions" 25
within 4 "pgpromote_candidate" 25
holds "the kernel made promotions under the control" \
	"$(awk '$1 == "with" { n += $3 } END { print n }' "$T_DIR/results")" -gt 2000
done_testing
