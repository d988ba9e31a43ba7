#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The control policy, which leaves every decision to the kernel, changes nothing.
#
# Three runs without us and three with `kernel` loaded, alternating, same seeds: hit
# ratio, promotions and candidates of the one lie within the spread of the other.
# lab: --fast-mb 256 --slow-mb 768 --timeout 400
. ./lib.sh

SECONDS_EACH=15
SLIP_LIMIT=0.05		# share of late batches above which pacing did not hold

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
		tierload hotcold --mib 160 --hot-pages 2048 --rate 40000 --seed "$2" \
			--seconds $SECONDS_EACH --place slow --quiet --json "$T_DIR/run.json" \
			>"$T_DIR/run.out" 2>&1 ||
			{ sed 's/^/# /' "$T_DIR/run.out"; bail "tierload failed"; }
		awk -v s="$(jget "$T_DIR/run.json" totals.slip)" -v l=$SLIP_LIMIT \
			'BEGIN { exit !(s <= l) }' && break
		note "$1, seed $2: pacing slipped ($(jget "$T_DIR/run.json" totals.slip) late)"
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { slipped=1; break; }
	done
	echo "$1 $(jget "$T_DIR/run.json" totals.fast_hit_ratio | awk '{ printf "%d", $1 * 1000 }')" \
		"$(($(vmstat pgpromote_success) - before_s))" \
		"$(($(vmstat pgpromote_candidate) - before_c))" | tee -a "$T_DIR/results" | sed 's/^/# /'
}

# within COLUMN NAME SLACK_PERCENT: the median with us lies in the spread of the runs
# without us, widened on both sides by the spread itself (three runs tell only so much)
# and by that many per cent of the middle.
within()
{
	if [ $slipped = 1 ]; then
		ok "$2 # SKIP the host is too busy to hold the pace: nothing to compare"
		return
	fi
	awk -v col="$1" -v slack="$3" '
		function sort3(a, n,   i, j, t) {
			for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++)
				if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
		}
		$1 == "without" { w[++nw] = $col }
		$1 == "with" { k[++nk] = $col }
		END {
			sort3(w, nw); sort3(k, nk)
			wide = w[nw] - w[1]
			more = w[2] * slack / 100
			if (more < wide) more = wide
			printf "without us %d..%d, with the control %d (median)\n", w[1], w[nw], k[2]
			exit !(nw == 3 && nk == 3 && k[2] >= w[1] - more && k[2] <= w[nw] + more)
		}' "$T_DIR/results" >"$T_DIR/verdict" && ok "$2: $(cat "$T_DIR/verdict")" ||
		not_ok "$2: $(cat "$T_DIR/verdict")"
}

quick_scans 1000
tiering_on
for seed in 1 2 3; do
	one without $seed
	runs "load the control ($seed)" tierctl load kernel
	reading "$T_DIR/a"
	one with $seed
	reading "$T_DIR/b"
	is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.*')" \
		"$(grown "$T_DIR/a" "$T_DIR/b" module kernel_verdicts)" \
		"every fault was left to the kernel ($seed)"
	runs "unload ($seed)" tierctl unload
done
within 2 "hit ratio (per mille)" 4
within 3 "promotions" 25
within 4 "pgpromote_candidate" 25
holds "the kernel made promotions under the control" \
	"$(awk '$1 == "with" { n += $3 } END { print n }' "$T_DIR/results")" -gt 2000
done_testing
