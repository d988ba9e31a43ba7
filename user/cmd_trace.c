// SPDX-License-Identifier: GPL-2.0
/* tierctl trace: decisions as a stream. */
#include <string.h>

#include "emit.h"

enum { NODE, PID, VERDICT, REASON, COUNT, ADDR };

static const char *const verdicts[] = { "kernel", "promote", "reject", NULL };

static const struct opt opts[] = {
	[NODE] = { "node", 0, OPT_NUMBER, "N", "faults from or to this node only", 0,
		TIER_MAX_NODES - 1, NULL },
	[PID] = { "pid", 'p', OPT_NUMBER, "PID", "faults of this process or thread only", 1,
		4194304, NULL },
	[VERDICT] = { "verdict", 0, OPT_CHOICE, "VERDICT", "this verdict only", 0, 0, verdicts },
	[REASON] = { "reason", 'r', OPT_LIST, "REASON", "this reason only; may be repeated", 0, 0,
		NULL },
	[COUNT] = { "count", 'n', OPT_NUMBER, "N", "stop after N decisions", 1, 1000000000, NULL },
	[ADDR] = { "addr", 'a', OPT_FLAG, NULL, "with page frame, and address if the policy asks for it",
		0, 0, NULL },
	{ 0 },
};

static const struct out_col cols[] = {
	{ "/time_s", "    TIME/s", OUT_RAW }, { "/source_node", "FROM", 0 }, { "/target_node", "TO", 0 },
	{ "/verdict", "VERDICT", 0 }, { "/reason", "REASON      ", 0 },
	{ "/latency_ms", "  LATENCY", 0 }, { "/pages", "PAGES", OUT_NO_UNIT },
	{ "/pid", "    PID", 0 }, { "/command", "COMMAND", 0 }, { 0 },
};

static const struct out_col addr_cols[] = {
	{ "/time_s", "    TIME/s", OUT_RAW }, { "/source_node", "FROM", 0 }, { "/target_node", "TO", 0 },
	{ "/reason", "REASON      ", 0 }, { "/latency_ms", "  LATENCY", 0 },
	{ "/pid", "    PID", 0 }, { "/pfn", "      PFN", 0 },
	{ "/addr", "     ADDRESS", 0 }, { 0 },
};

static const struct out_view views[2][2][2] = {
	{ { { OUT_VIEW_TABLE, "", NULL, cols, NULL, true } },
	  { { OUT_VIEW_TABLE, "", NULL, cols, NULL, false } } },
	{ { { OUT_VIEW_TABLE, "", NULL, addr_cols, NULL, true } },
	  { { OUT_VIEW_TABLE, "", NULL, addr_cols, NULL, false } } },
};

struct trace {
	struct tierctl *t;
	bool addr;
	__u64 count, left;	/* 0 in count: no end */
	__u64 start_ns;
	bool header;
	int code;
};

static void on_event(void *data, const struct tier_watch_event *e)
{
	struct trace *trace = data;
	struct out *out = trace->t->out;
	char text[32];

	if (trace->code || (trace->count && !trace->left))
		return;
	out_fixed(out, "time_s", e->time_ns > trace->start_ns ?
		  (e->time_ns - trace->start_ns) / 1e9 : 0, 6);
	out_u64(out, "time_ns", e->time_ns);
	out_s64(out, "source_node", e->fault.src_nid);
	out_s64(out, "target_node", e->fault.dst_nid);
	out_str(out, "verdict", verdict_name(tier_decision_verdict(e->decision)));
	out_str(out, "reason", tier_decision__name(e->decision) ?: "unknown");
	out_u64(out, "latency_ms", e->fault.latency_ms);
	out_u64(out, "pages", e->fault.nr_pages);
	out_u64(out, "pid", e->fault.tgid);
	out_u64(out, "tid", e->fault.pid);
	out_u64(out, "cpu", e->cpu);
	out_str(out, "command", e->comm);
	if (trace->addr) {
		snprintf(text, sizeof(text), "%llx", e->fault.pfn);
		out_str(out, "pfn", text);
		snprintf(text, sizeof(text), "%llx", e->fault.addr);
		out_str(out, "addr", e->fault.flags & TIER_FAULT_ADDR ? text : NULL);
	}
	trace->code = show(trace->t, views[trace->addr][trace->header]);
	trace->header = false;
	if (trace->count)
		trace->left--;
}

static void report_lost(struct tierctl *t, const struct tier_watch *watch)
{
	struct tier_watch_lost lost;

	tier_watch__lost(watch, &lost);
	if (!lost.events)
		return;
	if (t->json) {
		out_u64(t->out, "lost_events", lost.events);
		show(t, NULL);
		return;
	}
	note(t, "%llu decisions were lost: they came faster than they could be printed; narrow it "
	     "with --pid, --reason or --node", lost.events);
}

static bool ended(const struct trace *trace)
{
	return stopping || trace->code || (trace->count && !trace->left);
}

/* Until the end, or until the policy is swapped or unloaded. */
static int watch_one(struct trace *trace, const struct tier_watch_opts *options)
{
	struct tier_watch *watch;
	__u64 check_ns;

	if (tier_watch__open(trace->t->ctx, options, &watch))
		return failure_ctx(trace->t);
	check_ns = now_ns() + 500000000;
	while (!ended(trace)) {
		tier_watch__poll(watch, 200);
		if (now_ns() < check_ns)
			continue;
		check_ns = now_ns() + 500000000;
		if (!tier_watch__current(trace->t->ctx, watch))
			break;
	}
	report_lost(trace->t, watch);
	tier_watch__close(watch);
	return trace->code;
}

static int decisions(struct tierctl *t, const struct args *args, __u32 *mask)
{
	__u32 reasons = 0;

	*mask = ~0U;
	if (args->opt[VERDICT].given) {
		*mask = 0;
		for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++)
			if (tier_decision_verdict(d) == args->opt[VERDICT].number)
				*mask |= 1U << d;
	}
	if (!args->opt[REASON].given)
		return TIER_CLASS_OK;
	for (unsigned int i = 0; i < args->opt[REASON].nr; i++) {
		unsigned int d;

		for (d = 0; d < TIER_NR_DECISIONS; d++)
			if (tier_decision__name(d) &&
			    !strcmp(tier_decision__name(d), args->opt[REASON].list[i]))
				break;
		if (d == TIER_NR_DECISIONS)
			return failure(t, TIER_CLASS_USAGE,
				       "The reasons: man tierctl-counters, or tierctl help --man "
				       "--page tierctl-counters.7.",
				       "--reason: there is no reason '%.40s'", args->opt[REASON].list[i]);
		reasons |= 1U << d;
	}
	*mask &= reasons;
	if (!*mask)
		return failure(t, TIER_CLASS_USAGE, "",
			       "--reason: none of them belongs to verdict %s", args->opt[VERDICT].text);
	return TIER_CLASS_OK;
}

static int run(struct tierctl *t, const struct args *args)
{
	struct trace trace = {
		.t = t,
		.addr = args->opt[ADDR].given,
		.count = args->opt[COUNT].number,
		.left = args->opt[COUNT].number,
		.start_ns = now_ns(),
		.header = true,
	};
	struct tier_watch_opts options = {
		.on_event = on_event,
		.data = &trace,
		.pid = args->opt[PID].number,
		.node = args->opt[NODE].given ? (__s32)args->opt[NODE].number : -1,
	};
	int code = decisions(t, args, &options.decisions);

	if (code)
		return code;
	stop_on_signals();
	out__set_stream(t->out, true);
	code = watch_one(&trace, &options);
	while (!code && !ended(&trace)) {
		struct tier_status *s;
		bool loaded;

		if (tier_status__read(t->ctx, &s))
			return failure_ctx(t);
		loaded = s->state == TIER_STATE_ACTIVE || s->state == TIER_STATE_FOREIGN;
		if (loaded)
			note(t, "now in force: %s", s->policy);
		tier_status__free(s);
		if (!loaded) {
			note(t, "the policy has been unloaded");
			break;
		}
		code = watch_one(&trace, &options);
	}
	return code;
}

const struct command cmd_trace = {
	.name = "trace",
	.group = "Watch",
	.summary = "every decision as it is made",
	.doc = "Prints one line per decision of the policy in force: time since the start of the trace, "
	"nodes, verdict, reason, scan-to-fault latency, pages, process. With --json one object a "
	"line. Goes on over a swap, ends when the policy is unloaded. Decisions that came too fast "
	"to be printed are counted and reported.\n\n"
	"While it runs each fault costs more (a copy of its record); nothing stays behind.",
	.examples =
	"  tierctl trace --pid 1234 --verdict reject\n"
	"  tierctl trace --reason rate --count 100 --json\n",
	.opts = opts,
	.run = run,
};
