#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Metrics under load and over swaps: as text, by HTTP in both formats, as a textfile.
# lab: --fast-mb 256 --slow-mb 768 --timeout 900 --one-thread
. ./lib.sh

URL=http://127.0.0.1:9464/metrics

# The next of the readings that t_45_metrics.after gives to a Prometheus in this order.
n=10
shot()
{
	runs "metrics, reading $n" wget -q -O "$OUT/$n.om" \
		--header 'Accept: application/openmetrics-text; version=1.0.0' $URL
	n=$((n + 1))
}

# in_force 0|1: what the server says.
in_force()
{
	wget -q -O "$T_DIR/served.om" $URL && grep -q "^tier_policy_in_force $1\$" "$T_DIR/served.om"
}

echo 1 >/sys/kernel/mm/numa/demotion_enabled
tierctl metrics >"$OUT/idle.om"
is $? 0 "metrics with nothing in force"
quick_scans
need "load" tierctl load fixed --set hot_threshold_ms=150
tierctl metrics --listen 9464 2>"$T_DIR/served" &
server=$!
wait_for 60 "the server" wget -q -O /dev/null $URL || bail "the server does not answer"
is "$(netstat -ltn | awk '$4 ~ /:9464$/ { print $4 }')" 127.0.0.1:9464 \
	"the server listens on the loopback only"
tierload touch --pages 90001 --place slow --pace spin --rate 40000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
wait_for 120 "faults" counter_over policy_calls 1000 || not_ok "faults come"

for policy in mru rank twotouch fixed fixed; do
	shot
	runs "swap to $policy" tierctl swap $policy
	shot
	sleep 1
done
shot
wget -q -O "$OUT/http.prom" $URL
is "$(grep -c '^# EOF' "$OUT/http.prom")" 0 "without asking, the older format"
runs "textfile" tierctl metrics --textfile "$OUT/textfile.prom"
is "$(stat -c %a "$OUT/textfile.prom")" 644 "the collector may read it"
is "$(ls "$OUT" | grep -c 'textfile.prom.')" 0 "no half-written file is left"
tierctl metrics >"$OUT/direct.om"
kill $load
wait $load

runs "unload beneath the server" tierctl unload
in_force 0 && ok "the server goes on without a policy" || not_ok "the server goes on without a policy"
runs "the next load" tierctl load fixed
in_force 1 && ok "and with the next" || not_ok "and with the next"
is "$(grep -c '^tier_accounted 1$' "$T_DIR/served.om")" 1 "whose faults are all counted"
runs "unload" tierctl unload
kill $server
wait $server
is $? 0 "the server ends cleanly"
done_testing
