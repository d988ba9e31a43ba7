// SPDX-License-Identifier: GPL-2.0
/*
 * The NUMA scanner of one process with one thread, by the kernel's rules.
 *
 * What is easily overlooked, and decides how often a page is stamped: the
 * period counts the thread's CPU time, not the clock; each run of the scanner
 * pushes the next one away by 32 times the CPU time it took; the period only
 * ever doubles (in tiering mode no fault counts as local), once per pass in
 * which a page was promoted; a run stops at the budget even if that is the end
 * of the area, and the next run then finds only the small areas behind it.
 */
#include "sim.h"

#define MAX_SCAN_WINDOW_MIB 2560
#define OTHER_RSS_PAGES 1024		/* libraries, heap, stack: more than nothing */

static uint32_t scan_windows(const struct ts_proc *p, const struct ts_options *opt)
{
	uint32_t size = opt->scan_size_mib * TS_PAGES_PER_MIB;

	return (p->pages + OTHER_RSS_PAGES + size - 1) / size;
}

static uint32_t scan_min_ms(const struct ts_proc *p, const struct ts_options *opt)
{
	uint32_t windows = 1, floor_ms, ms;

	if (opt->scan_size_mib < MAX_SCAN_WINDOW_MIB)
		windows = MAX_SCAN_WINDOW_MIB / opt->scan_size_mib;
	floor_ms = 1000 / windows;
	ms = opt->scan_min_ms / scan_windows(p, opt);
	return ms > floor_ms ? ms : floor_ms;
}

static uint32_t scan_max_ms(const struct ts_proc *p, const struct ts_options *opt)
{
	uint32_t min_ms = scan_min_ms(p, opt), ms = opt->scan_max_ms / scan_windows(p, opt);

	return ms > min_ms ? ms : min_ms;
}

void ts_scan_init(struct ts_proc *p, const struct ts_options *opt)
{
	p->period_ms = opt->scan_period_ms;
	p->node_stamp_ns = 2 * TS_TICK_MS * 1000000ull;
	p->next_scan_ms = opt->scan_period_ms;
}

/* Marks what can fault; returns the PTEs changed. */
static uint32_t change_prot(struct ts_machine *m, const struct ts_proc *p, uint32_t start,
			    uint32_t end)
{
	uint32_t now_ms = ts_now_ms(m), changed = 0, f;

	for (f = (p->first_page + start) / m->folio_pages;
	     f < (p->first_page + end) / m->folio_pages; f++) {
		if (m->state[f] & (TS_PROTNONE | TS_FAST))
			continue;
		m->state[f] |= TS_PROTNONE;
		m->stamp_ms[f] = now_ms;
		changed += m->folio_pages;
	}
	m->count.ptes += changed;
	return changed;
}

/* Tell the decider what the observer would record of this scan. */
static int record(struct ts_machine *m, struct ts_proc *p, uint32_t start, uint32_t end)
{
	const uint64_t pages = 1u << (TIER_REGION_SHIFT - 12);
	uint64_t r;
	int err = 0;

	for (r = start / pages; !err && r * pages < end; r++) {
		struct tier_region *region = &p->region[r];
		struct tier_region_key key = {
			.mm_id = ts_mm_id(m, p),
			.region = (TS_AREA_START >> TIER_REGION_SHIFT) + r,
		};
		uint32_t slot = region->nr++ % TIER_REGION_SCANS;

		region->scan_ms[slot] = ts_now_ms(m);
		region->took_ms[slot] = 0;
		if (m->decider->scanned)
			err = m->decider->scanned(m->decider, &key, region);
	}
	return err;
}

/* Marks a range unless the decider's scan op says no; *changed as change_prot(). */
static int scan_range(struct ts_machine *m, struct ts_proc *p, uint32_t start, uint32_t end,
		      uint32_t *changed)
{
	const struct tier_scan scan = {
		.start = TS_AREA_START + (uint64_t)start * 4096,
		.end = TS_AREA_START + (uint64_t)end * 4096,
		.mm_id = ts_mm_id(m, p), .vm_start = TS_AREA_START,
		.vm_end = TS_AREA_START + (uint64_t)p->pages * 4096, .vm_flags = TS_VM_FLAGS,
		.now_ms = ts_now_ms(m), .scan_seq = p->scan_seq,
		.pid = ts_pid(m, p), .tgid = ts_pid(m, p),
	};
	bool skip = false;
	int err = 0;

	*changed = 0;
	if (m->decider->scan)
		err = m->decider->scan(m->decider, &scan, &skip);
	if (err || skip)
		return err;
	*changed = change_prot(m, p, start, end);
	return *changed ? record(m, p, start, end) : 0;
}

static int scan_work(struct ts_machine *m, struct ts_proc *p)
{
	const struct ts_options *opt = m->opt;
	int64_t pages = (int64_t)opt->scan_size_mib * TS_PAGES_PER_MIB, virt = 8 * pages;
	uint32_t start = p->offset, end, changed, seen = 0;
	uint64_t cost_ns;
	int err = 0;

	p->next_scan_ms = m->t_ms + p->period_ms;
	p->node_stamp_ns += 2 * TS_TICK_MS * 1000000ull;
	while (start < p->pages && pages > 0 && virt > 0 && !err) {
		/* a huge page is never marked by halves */
		end = (uint32_t)(start + pages + TS_HUGE_PAGES - 1) & ~(TS_HUGE_PAGES - 1);
		if (end > p->pages)
			end = p->pages;
		err = scan_range(m, p, start, end, &changed);
		if (changed)
			pages -= end - start;
		virt -= end - start;
		seen += end - start;
		start = end;
	}
	if (start >= p->pages && pages > 0 && virt > 0) {
		p->scan_seq++;
		start = 0;
	}
	p->offset = start;
	cost_ns = (uint64_t)(seen * opt->scan_pte_ns / m->folio_pages);
	p->runtime_ns += cost_ns;
	p->node_stamp_ns += 32 * cost_ns;
	return err;
}

int ts_scan_tick(struct ts_machine *m, struct ts_proc *p)
{
	uint64_t period_ns = p->period_ms * 1000000ull;

	p->runtime_ns += (uint64_t)(m->opt->cpu_share * p->share * TS_TICK_MS * 1000000.0);
	if (p->runtime_ns <= p->node_stamp_ns + period_ns)
		return 0;
	p->node_stamp_ns += period_ns;
	return m->t_ms < p->next_scan_ms ? 0 : scan_work(m, p);
}

/* A promotion counts as a fault that was neither local nor shared: scan more slowly. */
void ts_scan_promoted(struct ts_machine *m, struct ts_proc *p)
{
	uint32_t max_ms;

	if (m->t_ms <= p->retry_ms)
		return;
	p->retry_ms = m->t_ms + (p->period_ms / 16 < 1000 ? p->period_ms / 16 : 1000);
	if (p->placed_seq == p->scan_seq)
		return;
	p->placed_seq = p->scan_seq;
	max_ms = scan_max_ms(p, m->opt);
	p->period_ms = 2 * p->period_ms < max_ms ? 2 * p->period_ms : max_ms;
	p->next_scan_ms = m->t_ms + p->period_ms;
}
