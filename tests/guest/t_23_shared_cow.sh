#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# With reject_shared_cow, pages that many processes share copy-on-write stay, and each fault on one is counted as shared.
#
# 32 processes share a data segment that the scanner marked while one process had it. Base
# pages and huge pages; without the parameter the same pages go up.
# lab: --fast-mb 384 --slow-mb 640 --timeout 400
. ./lib.sh
. ./lib3.sh

PROCESSES=32
PAGES=1009
HUGE=3

# share NAME PAGES [thp]: readings a and b around the program.
share()
{
	local name=$1
	shift
	reading "$T_DIR/a"
	runs "$name: $PROCESSES processes read $1 pages" cowshare $PROCESSES "$@"
	cp "$T_DIR/runs" "$T_DIR/share"
	reading "$T_DIR/b"
	is "$(value "$T_DIR/share" slow_before)" "$1" "$name: all pages were on the slow node"
}

promotions()
{
	grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success
}

quick_scans 500
max=$(param_max fixed hot_threshold_ms)
need "load fixed, everything hot, shared pages refused" tierctl load fixed \
	--set hot_threshold_ms="$max" --set reject_shared_cow=1

share refused $PAGES
is "$(value "$T_DIR/share" slow_after)" $PAGES "refused: all pages are still there"
is "$(decided "$T_DIR/a" "$T_DIR/b" shared)" $((PROCESSES * PAGES)) \
	"refused: each fault of each process was counted as shared"
is "$(promotions)" 0 "refused: nothing was promoted"

share "huge, refused" $((HUGE * 512)) thp
is "$(value "$T_DIR/share" slow_after)" $((HUGE * 512)) "huge, refused: all pages are still there"
is "$(decided "$T_DIR/a" "$T_DIR/b" shared)" $((PROCESSES * HUGE)) \
	"huge, refused: each fault of each process was counted as shared"
is "$(decided "$T_DIR/a" "$T_DIR/b" shared pages)" $((PROCESSES * HUGE * 512)) \
	"huge, refused: with 512 pages each"
is "$(promotions)" 0 "huge, refused: nothing was promoted"

runs "shared pages may go up" tierctl set reject_shared_cow=0
share taken $PAGES
is "$(decided "$T_DIR/a" "$T_DIR/b" shared)" 0 "taken: none was refused"
holds "taken: pages went up" "$(promotions)" -ge $((PAGES / 2))
share "huge, taken" $((HUGE * 512)) thp
is "$(decided "$T_DIR/a" "$T_DIR/b" shared)" 0 "huge, taken: none was refused"
# Whether the kernel can move a huge page that 32 processes are at is its affair.
holds "huge, taken: the policy wanted them up" "$(decided "$T_DIR/a" "$T_DIR/b" hot)" -ge $HUGE

# A page of one process only is none of these.
runs "shared pages refused again" tierctl set reject_shared_cow=1
reading "$T_DIR/a"
runs "own: one process's pages go up" touch_until 90 $PAGES \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + PAGES))
reading "$T_DIR/b"
is "$(decided "$T_DIR/a" "$T_DIR/b" shared)" 0 "own: none of them was refused"
runs "unload" tierctl unload
done_testing
