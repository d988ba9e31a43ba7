// SPDX-License-Identifier: GPL-2.0
/* tierctl top: full-screen live view. */
#include <ncurses.h>
#include <stdlib.h>
#include <unistd.h>

#include "top.h"

enum { INTERVAL, NO_TASKS, COUNT };

static const struct opt opts[] = {
	[INTERVAL] = { "interval", 'i', OPT_DURATION, "TIME", "time between readings (default 1 s)",
		100, 3600000, NULL },
	[NO_TASKS] = { "no-tasks", 0, OPT_FLAG, NULL,
		"without processes: watching them makes each fault dearer", 0, 0, NULL },
	[COUNT] = { "count", 'n', OPT_NUMBER, "N", "end after N readings", 1, 1000000000, NULL },
	{ 0 },
};

#define MIN_NS	100000000ULL
#define MAX_NS	60000000000ULL

/* True to quit. */
static bool on_key(struct top *top, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
	case 3:		/* Ctrl-C, if the terminal sends it as a key */
		return true;
	case 's':
		top->sort = top->sort == TOP_BY_FAULTS ? TOP_BY_PROMOTIONS : TOP_BY_FAULTS;
		break;
	case 'p':
	case ' ':
		top->paused = !top->paused;
		break;
	case '+':
		top->interval_ns = top->interval_ns * 2 > MAX_NS ? MAX_NS : top->interval_ns * 2;
		break;
	case '-':
		top->interval_ns = top->interval_ns / 2 < MIN_NS ? MIN_NS : top->interval_ns / 2;
		break;
	}
	top_draw(top);
	return false;
}

/* Keys until it is time for the next reading. True to quit. */
static bool wait_keys(struct top *top, __u64 until_ns)
{
	while (!stopping) {
		__u64 now = now_ns();
		int key;

		if (now >= until_ns)
			return false;
		timeout((until_ns - now) / 1000000 + 1);
		key = getch();
		if (key == ERR)
			continue;
		if (on_key(top, key))
			return true;
	}
	return true;
}

static int loop(struct top *top, __u64 count)
{
	for (__u64 n = 0; ; n++) {
		__u64 began = now_ns();
		int code;

		if (!top->paused) {
			code = top_read(top);
			if (code)
				return code;
		}
		top_draw(top);
		if (count && n + 1 >= count)
			return TIER_CLASS_OK;
		if (wait_keys(top, began + top->interval_ns))
			return TIER_CLASS_OK;
	}
}

static int run(struct tierctl *t, const struct args *args)
{
	struct top *top;
	SCREEN *screen;
	int code;

	if (t->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return failure(t, TIER_CLASS_USAGE, "tierctl stats -i 1 shows the same as lines, or JSON.",
			       "top needs a terminal");
	top = calloc(1, sizeof(*top));
	if (!top)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	top->t = t;
	top->want_tasks = !args->opt[NO_TASKS].given;
	top->interval_ns = (args->opt[INTERVAL].given ? args->opt[INTERVAL].number : 1000) * 1000000;
	stop_on_signals();
	/* Not initscr(): that one exits when the terminal is unknown. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		free(top);
		return failure(t, TIER_CLASS_FAILED, "Set TERM to what your terminal is (xterm, screen).",
			       "top: terminal '%s' is unknown", getenv("TERM") ?: "");
	}
	set_term(screen);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	code = loop(top, args->opt[COUNT].number);
	endwin();
	delscreen(screen);
	/* Said only now: the screen is the user's again. */
	if (code)
		failure_ctx(t);
	top_free(top);
	free(top);
	return code;
}

const struct command cmd_top = {
	.name = "top",
	.group = "Watch",
	.summary = "full-screen live view",
	.doc = "Shows, every second, the nodes with their verdict rates, threshold and median latency, "
	"the reasons, pages moved, the cost of scanning, threshold and rates over time, and the "
	"processes with the most hint faults. Keys: q quits, s sorts by faults or promotions, p "
	"pauses, + and - change the interval.\n\n"
	"Counting by process makes each hint fault dearer while top runs; --no-tasks does without.",
	.examples = "  tierctl top\n  tierctl top -i 5 --no-tasks\n",
	.opts = opts,
	.run = run,
};
