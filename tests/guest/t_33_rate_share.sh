#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A rate limit as a share of the slow tier's bandwidth: from the firmware's table, else measured once.
#
# load, swap and set take it; what comes out is the limit in MiB/s that get shows and the
# policy enforces.
# lab: --fast-mb 384 --slow-mb 768 --timeout 400
# paced
. ./lib.sh
. ./lib3.sh

HMAT=/sys/devices/system/node/node$SLOW_NODE/access0/initiators
KEPT=/run/tierctl/read_mbps_node$SLOW_NODE
PAGES=4001

# mibps MBPS PERCENT: the share in whole MiB/s.
mibps()
{
	awk -v b="$1" -v p="$2" 'BEGIN { print int(b * 1000000 * p / 100 / 1048576 + 1e-9) }'
}

limit_in_force()
{
	[ "$(tierctl stats --json | jget - "nodes.node=$FAST_NODE.rate_limit_pages_per_s")" = "$1" ]
}

topo_mbps()
{
	tierctl topo --json | jget - "nodes.node=$SLOW_NODE.read_bandwidth_mbps"
}

tiering_on
quick_scans
machine_state >"$T_DIR/before"
dmesg_mark
firmware=$(cat "$HMAT/read_bandwidth") || bail "this lab has no HMAT"
holds "the firmware tells the slow node's bandwidth in MB/s" "$firmware" -gt 1000

need "load takes a share" tierctl load fixed --set hot_threshold_ms=60000 --set rate_limit_mbps=5%
is "$(tierctl get rate_limit_mbps)" "$(mibps "$firmware" 5)" "load: 5 % of it in MiB/s"
runs "swap takes a share" tierctl swap fixed --set hot_threshold_ms=60000 --set rate_limit_mbps=12.5%
is "$(tierctl get rate_limit_mbps)" "$(mibps "$firmware" 12.5)" "swap: 12.5 % of it"
runs "set takes a share" tierctl set rate_limit_mbps=0.02%
small=$(mibps "$firmware" 0.02)
is "$(tierctl get rate_limit_mbps)" "$small" "set: 0.02 % of it"
is "$(tierctl set rate_limit_mbps=0.02% --json | jget - set.rate_limit_mbps)" "$small" \
	"set --json tells the limit, not the share"

# It is the limit that the policy goes by: more hot pages than it lets through are refused.
touch_until 120 $PAGES decision_over rate 100 &&
	ok "hot pages beyond the share are refused" || not_ok "hot pages beyond the share are refused"
limit_in_force $((small * 256)) && ok "the limit in force is the share" ||
	not_ok "the limit in force is the share"

fails 2 'rate_limit_mbps.*out of range' "no share is no limit, so it is refused" \
	tierctl set rate_limit_mbps=0%
fails 2 'rate_limit_mbps.*out of range' "more than all is refused" tierctl set rate_limit_mbps=101%
fails 2 'hot_threshold_ms.*not a whole number' "other parameters take no share" \
	tierctl set hot_threshold_ms=5%
is "$(tierctl get rate_limit_mbps)" "$small" "refused values change nothing"
[ -e "$KEPT" ] && not_ok "nothing is measured that the firmware tells" ||
	ok "nothing is measured that the firmware tells"

# Without the firmware's word: measured, kept, and not measured again.
mkdir "$T_DIR/nothing" && mount --bind "$T_DIR/nothing" "$HMAT" || bail "cannot hide $HMAT"
fails 1 'has not been measured' "a dry run measures nothing" \
	tierctl swap fixed --set rate_limit_mbps=10% --dry-run
[ -e "$KEPT" ] && not_ok "and keeps nothing" || ok "and keeps nothing"
runs "without it the bandwidth is measured" tierctl set rate_limit_mbps=10%
measured=$(cat "$KEPT" 2>/dev/null || echo 0)
holds "a bandwidth was measured, in MB/s" "$measured" -gt 0
want=$(mibps "$measured" 10)
[ "$want" -gt 0 ] || want=1
is "$(tierctl get rate_limit_mbps)" "$want" "set: 10 % of what was measured"
is "$(topo_mbps)" "$measured" "topo shows it"
echo 4000 >"$KEPT"
runs "a second share" tierctl set rate_limit_mbps=10%
is "$(tierctl get rate_limit_mbps)" "$(mibps 4000 10)" "what was measured once is not measured again"
umount "$HMAT"
is "$(topo_mbps)" "$firmware" "topo shows the firmware's word when there is one"
rm -f "$KEPT"

need "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
