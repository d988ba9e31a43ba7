#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Each policy promotes a hot set of base pages and of huge pages, and counts a huge page's fault with 512 pages.
#
# Hot pages are touched every 76 ms, the others every 5 s; huge pages the same, each as one.
# lab: --fast-mb 384 --slow-mb 512 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

MIB=128
HOT=4096		# pages: 8 huge ones
LEAST_PERCENT=85

# hot_set POLICY SHAPE TIERLOAD-ARGUMENT...
hot_set()
{
	local shape=$2 what="$1, $2" faults pages
	shift 2
	reading "$T_DIR/a"
	runs "$what: $LEAST_PERCENT % of the hot set get fast" hot_until run 60 $LEAST_PERCENT 1 hotcold \
		--mib $MIB --hot-pages $HOT --place slow --pace spin "$@"
	reading "$T_DIR/b"
	faults=$(decided "$T_DIR/a" "$T_DIR/b" '*')
	pages=$(decided "$T_DIR/a" "$T_DIR/b" '*' pages)
	if [ "$shape" = huge ]; then
		is "$pages" $((faults * 512)) "$what: each fault counts 512 pages"
		is "$(kernel_of run huge_mib_start)" $MIB "$what: the memory was of huge pages"
		holds "$what: faults came" "$faults" -ge 8
	else
		is "$pages" "$faults" "$what: each fault counts one page"
		holds "$what: faults came" "$faults" -ge $((HOT / 2))
	fi
	note "$what: $faults faults, $(kernel_of run promotions) pages promoted"
	is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" \
		"$(grown_sum "$T_DIR/a" "$T_DIR/b" observer.promoted_pages)" \
		"$what: the observer counted what went up"
}

quick_scans 300
for policy in fixed mainline twotouch rank; do
	need "load $policy" tierctl load $policy
	hot_set $policy base --rate 60000
	hot_set $policy huge --thp on --rate 117
	runs "unload $policy" tierctl unload
done
done_testing
