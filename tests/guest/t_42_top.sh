#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# top in a real terminal: two sizes, keys, a swap, an unload and the next load beneath it.
# lab: --fast-mb 256 --slow-mb 768 --timeout 600 --one-thread
. ./lib.sh

mkdir -p "$T_DIR/locale/C.utf8"
cp ./LC_CTYPE "$T_DIR/locale/C.utf8/"
export LOCPATH="$T_DIR/locale" LC_ALL=C.UTF-8 TERM=linux

screen()
{
	./tmux -L top capture-pane -p -t top >"$T_DIR/screen" 2>/dev/null
}

shows()
{
	screen && grep -Eq -e "$1" "$T_DIR/screen"
}

# sees SECONDS PATTERN WHAT: the screen comes to show it.
sees()
{
	if wait_for "$1" "$3" shows "$2"; then
		ok "$3"
	else
		not_ok "$3"
		sed 's/^/#   |/' "$T_DIR/screen"
	fi
}

# The workload faults in a child of its own.
child()
{
	awk -v parent="$1" '$4 == parent { print $1 }' /proc/[0-9]*/stat 2>/dev/null
}

keys()
{
	./tmux -L top send-keys -t top "$@"
}

quick_scans
need "load" tierctl load fixed --set hot_threshold_ms=150
tierload touch --pages 90001 --place slow --pace spin --rate 40000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!

need "a terminal of 80x24" ./tmux -L top -f /dev/null new-session -d -x 80 -y 24 -s top \
	"tierctl top; echo left with \$?; sleep 1000"
sees 30 'policy fixed' "the policy's name"
sees 60 'promote +hot' "verdicts with their reason"
sees 30 "$(child $load) +tierload" "the process that faults"
sees 5 'all faults counted' "the sum"
sees 5 'pages up [0-9]' "pages moved"
sees 5 '^ q quit' "the keys"
sees 5 'HOT BELOW +P50$' "the last column is whole"
sed 's/^/# |/' "$T_DIR/screen"
keys s
sees 5 's sort by faults' "s sorts by promotions"
keys p
sees 5 'PAUSED' "p pauses"
keys p
./tmux -L top resize-window -t top -x 200 -y 50
sleep 1
sees 10 'policy fixed' "it goes on after a change to 200x50"
screen
is "$(wc -l <"$T_DIR/screen")" 50 "and uses the whole screen"
awk 'NR == 50' "$T_DIR/screen" | grep -q 'q quit' && ok "down to the last line" ||
	not_ok "not down to the last line"
./tmux -L top resize-window -t top -x 40 -y 10
sees 10 'tierctl top' "a tiny terminal"
./tmux -L top resize-window -t top -x 80 -y 24

runs "swap" tierctl swap mru
sees 20 'policy mru' "the new policy after a swap"
kill $load
wait $load
runs "unload, with top still open" tierctl unload
sees 20 'no policy in force' "nothing is in force"
wait_for 20 "the module to go" sh -c '! grep -q tier_policy /proc/modules' && ok "top does not hold the module" ||
	not_ok "top holds the module"
runs "load" tierctl load fixed
sees 20 'policy fixed' "the next policy is picked up"
keys q
sees 10 'left with 0' "q leaves with 0"
is "$(grep -c 'tierctl top' "$T_DIR/screen")" 0 "the terminal is as before"
./tmux -L top kill-server
runs "unload" tierctl unload

fails 2 'terminal' "no terminal" tierctl top
done_testing
