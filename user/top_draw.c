// SPDX-License-Identifier: GPL-2.0
/* tierctl top: the screen. Everything is clipped to it, from 40x10 up. */
#include <langinfo.h>
#include <ncurses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

static int row;		/* next line of the screen */

/* One line, cut at the right edge; lines below the screen are dropped. */
static void __attribute__((format(printf, 2, 3)))
line(int attr, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (row >= LINES - 1)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	attron(attr);
	if (attr & A_REVERSE)
		mvhline(row, 0, ' ', COLS);
	mvaddnstr(row++, 0, text, COLS);
	attroff(attr);
}

static void size_text(__u64 bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "K", "M", "G", "T", "P" };
	double value = bytes;
	unsigned int i = 0;

	while (value >= 1000 && i < 5) {
		value /= 1024;
		i++;
	}
	snprintf(buf, size, "%.*f%s", value < 10 && i ? 1 : 0, value, units[i]);
}

static void rate_text(double value, char *buf, size_t size)
{
	if (value >= 9999500)
		snprintf(buf, size, "%.1fM", value / 1e6);
	else if (value >= 99950)
		snprintf(buf, size, "%.0fk", value / 1e3);
	else
		snprintf(buf, size, "%.*f", value < 10 && value > 0 ? 1 : 0, value);
}

static void ms_text(long ms, char *buf, size_t size)
{
	if (ms < 0)
		snprintf(buf, size, "-");
	else
		snprintf(buf, size, ms >= 100000 ? "%ld s" : "%ld ms", ms >= 100000 ? ms / 1000 : ms);
}

static void draw_head(const struct top *top)
{
	line(A_REVERSE, " tierctl top   policy %s%s   every %.1f s%s", top->now->policy,
	     top->now->ejected ? " EJECTED" : "",
	     top->interval_ns / 1e9, top->paused ? "   PAUSED" : "");
	attron(A_REVERSE);
	if (top->missing)
		mvprintw(0, COLS > 30 ? COLS - 26 : 0, " %lld faults unaccounted ",
			 (long long)top->missing);
	else if (COLS >= 60)
		mvprintw(0, COLS - 21, " all faults counted ");
	attroff(A_REVERSE);
}

static void draw_node(const struct top *top, unsigned int nid)
{
	char size[16], free_text[16], rates[4][16], threshold[24], p50[24];
	struct totals now, last;
	const struct sys_node *n = &top->nodes[nid];

	stats_node_totals(top->now, nid, true, &now);
	stats_node_totals(top->last, nid, true, &last);
	size_text(n->total_bytes, size, sizeof(size));
	size_text(n->free_bytes, free_text, sizeof(free_text));
	rate_text((now.faults_counted - last.faults_counted) / top->seconds, rates[0], 16);
	for (unsigned int v = 0; v < 3; v++)
		rate_text((now.verdict[v] - last.verdict[v]) / top->seconds, rates[1 + v], 16);
	ms_text(top->now->node[nid].threshold_ms ? (long)top->now->node[nid].threshold_ms : -1,
		threshold, sizeof(threshold));
	ms_text(top_quantile_ms(top, nid, 500), p50, sizeof(p50));
	line(0, "%4u  %s %5s %5s %8s %9s %8s %8s %9s %8s%s", nid, node_tier(top->now, nid), size,
	     free_text, rates[0], rates[1 + TIER_VERDICT_PROMOTE], rates[1 + TIER_VERDICT_REJECT],
	     rates[1 + TIER_VERDICT_KERNEL], threshold, p50, n->unreclaimable ? " STUCK" : "");
}

/* Nodes that are targets or have memory; all of them only if there is room. */
static void draw_nodes(const struct top *top)
{
	int left = LINES / 3;

	line(A_BOLD, "NODE  TIER  SIZE  FREE FAULTS/s PROMOTE/s REJECT/s KERNEL/s HOT BELOW      P50");
	for (unsigned int nid = 0; nid < top->now->nr_nodes && left; nid++) {
		if (!(top->now->nodes >> nid & 1))
			continue;
		draw_node(top, nid);
		left--;
	}
}

#define MAX_REASONS	6

static void draw_reasons(const struct top *top)
{
	const struct totals *d = &top->delta;
	unsigned int order[TIER_NR_DECISIONS], nr = 0;
	int width = COLS - 40;

	for (unsigned int i = 0; i < TIER_NR_DECISIONS; i++) {
		unsigned int at = nr;

		if (!d->faults[i])
			continue;
		for (; at && d->faults[order[at - 1]] < d->faults[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
		nr++;
	}
	line(A_BOLD, "VERDICT  REASON         FAULTS/s  SHARE");
	if (!nr)
		line(0, "no faults in this interval");
	for (unsigned int i = 0; i < nr && i < MAX_REASONS; i++) {
		double share = (double)d->faults[order[i]] / d->faults_counted;
		char rate[16], bar[256] = "";
		int n = share * width + 0.5;

		if (width > 0 && n > 0)
			memset(bar, '#', n < (int)sizeof(bar) - 1 ? n : (int)sizeof(bar) - 1);
		rate_text(d->faults[order[i]] / top->seconds, rate, sizeof(rate));
		line(0, "%-8s %-12s %10s %5.1f%% %s", verdict_name(tier_decision_verdict(order[i])),
		     tier_decision__name(order[i]) ?: "unknown", rate, share * 100, bar);
	}
}

static void draw_moves(const struct top *top)
{
	const struct totals *d = &top->delta;
	const struct tier_scans *now = &top->now->scans, *last = &top->last->scans;
	char up[16], down[16], failed[16], ptes[16];
	double busy;

	if (!top->now->observer) {
		line(0, "no observer: no migrations and scans");
		return;
	}
	rate_text(d->moves[TIER_MV_PROMOTED] / top->seconds, up, sizeof(up));
	rate_text(d->moves[TIER_MV_DEMOTED] / top->seconds, down, sizeof(down));
	rate_text((d->moves[TIER_MV_PROMOTE_REFUSED] + d->moves[TIER_MV_PROMOTE_FAILED]) /
		  top->seconds, failed, sizeof(failed));
	rate_text((now->count[TIER_SC_PTES] - last->count[TIER_SC_PTES]) / top->seconds, ptes,
		  sizeof(ptes));
	busy = (now->count[TIER_SC_WORK_NS] - last->count[TIER_SC_WORK_NS]) / 1e7 / top->seconds;
	line(0, "pages up %s/s, down %s/s, failed %s/s; scanner %s PTEs/s, %.1f %% of a CPU", up, down,
	     failed, ptes, busy);
}

/* Newest to the right; scaled to the largest value on the screen. */
static void sparkline(const char *title, const char *unit, const double *ring, unsigned int nr)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	const char *const *steps = utf8 ? blocks : ascii;
	unsigned int room = COLS > 30 ? COLS - 30 : 0, have = nr < TOP_HISTORY ? nr : TOP_HISTORY;
	double largest = 0;
	char value[16];

	if (row >= LINES - 1 || !have)
		return;
	room = room < have ? room : have;
	for (unsigned int i = 0; i < room; i++)
		if (ring[(nr - room + i) % TOP_HISTORY] > largest)
			largest = ring[(nr - room + i) % TOP_HISTORY];
	rate_text(ring[(nr - 1) % TOP_HISTORY], value, sizeof(value));
	mvprintw(row, 0, "%-10s %10s %-6s ", title, value, unit);
	for (unsigned int i = 0; i < room; i++) {
		double v = ring[(nr - room + i) % TOP_HISTORY];
		int step = largest > 0 ? (int)(v / largest * 8 + 0.5) : 0;

		addstr(steps[v > 0 && !step ? 1 : step]);
	}
	row++;
}

static void draw_tasks(const struct top *top)
{
	line(A_BOLD, "    PID  COMMAND           FAULTS/s PROMOTE/s  REJECT/s PAGES UP/s      TOTAL");
	if (*top->watch_error)
		line(0, "%s", top->watch_error);
	for (unsigned int i = 0; i < top->nr_tasks && row < LINES - 1; i++) {
		const struct top_task *t = &top->tasks[i];
		char comm[16], rates[4][16];

		out_clean(t->comm, comm, sizeof(comm));
		rate_text(t->faults_per_s, rates[0], 16);
		rate_text(t->promote_per_s, rates[1], 16);
		rate_text(t->reject_per_s, rates[2], 16);
		rate_text(t->pages_up_per_s, rates[3], 16);
		line(0, "%7u  %-16s %9s %9s %9s %10s %10llu", t->pid, comm, rates[0], rates[1], rates[2],
		     rates[3], (unsigned long long)t->faults);
	}
}

void top_draw(const struct top *top)
{
	erase();
	row = 0;
	if (!top->now) {
		line(A_REVERSE, " tierctl top");
		line(0, "no policy in force: waiting for tierctl load");
	} else if (!top->last) {
		draw_head(top);
		line(0, "first reading taken");
	} else {
		draw_head(top);
		draw_nodes(top);
		line(0, " ");
		draw_reasons(top);
		line(0, " ");
		draw_moves(top);
		sparkline("threshold", "ms", top->threshold_ms, top->nr_history);
		sparkline("faults", "/s", top->faults_per_s, top->nr_history);
		sparkline("pages up", "/s", top->up_per_s, top->nr_history);
		line(0, " ");
		draw_tasks(top);
	}
	attron(A_REVERSE);
	mvprintw(LINES - 1, 0, "%-*.*s", COLS - 1, COLS - 1,
		 top->sort == TOP_BY_PROMOTIONS ?
		 " q quit  s sort by faults  p pause  + - interval" :
		 " q quit  s sort by promotions  p pause  + - interval");
	attroff(A_REVERSE);
	refresh();
}
