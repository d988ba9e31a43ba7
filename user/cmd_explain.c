// SPDX-License-Identifier: GPL-2.0
/* tierctl explain: where a process's memory is, and why it is not promoted. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"

enum { VMA, WINDOW, ALL };

static const struct opt opts[] = {
	[VMA] = { "vma", 0, OPT_FLAG, NULL, "list the mappings with their addresses", 0, 0, NULL },
	[WINDOW] = { "window", 'w', OPT_DURATION, "TIME",
		"watch the policy's decisions for so long (default 3 s)", 0, 600000, NULL },
	[ALL] = { "all", 'a', OPT_FLAG, NULL, "all mappings, not only the ten with most slow memory",
		0, 0, NULL },
	{ 0 },
};

static const struct out_col word_cols[] = { { "", "", 0 }, { 0 } };

static const struct out_col node_cols[] = {
	{ "/node", "NODE", 0 }, { "/tier", "TIER", 0 }, { "/size_bytes", "MEMORY", 0 },
	{ "/share_ratio", "SHARE", 0 }, { 0 },
};

static const struct out_col verdict_cols[] = {
	{ "/verdict", "VERDICT", 0 }, { "/reason", "REASON", 0 }, { "/faults", "FAULTS", OUT_NO_UNIT },
	{ "/pages", "PAGES", OUT_NO_UNIT }, { "/cause", "MEANING", 0 }, { 0 },
};

static const struct out_col vma_cols[] = {
	{ "/start", "START", OUT_OPTIONAL }, { "/slow_bytes", "SLOW", 0 }, { "/fast_bytes", "FAST", 0 },
	{ "/what", "MAPPING", 0 }, { "/policy", "POLICY", 0 }, { "/why", "WHY NOT", OUT_EMPTY }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_ITEMS, "/words", NULL, word_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/nodes", "Where its memory is", node_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/verdicts", "What the policy decided", verdict_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/mappings", "Mappings with slow memory", vma_cols, NULL, false },
	{ 0 },
};

struct explain {
	struct tierctl *t;
	unsigned int pid;
	char comm[32];
	struct tier_env env;
	struct maps maps;
	__u64 bytes[SYS_MAX_NODES], total, fast, slow;
	__u64 slow_by[OBSTACLE_NR];	/* slow bytes by obstacle */
	__u64 slow_locked;
	__u64 slow_cow, slow_shared;	/* scanned, but in part mapped by several processes */
	__u64 scan_seq;			/* full scans of the process; ~0: unknown */
	bool watched;
	char watch_error[256];
	double window_s;
	struct tier_watch_task task;
};

static void __attribute__((format(printf, 2, 3)))
say(struct explain *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	out_str(e->t->out, NULL, text);
}

static void watch(struct explain *e, __u64 window_ms)
{
	const struct tier_watch_opts options = {
		.tasks = true, .pid = e->pid, .node = -1, .decisions = ~0U,
	};
	struct tier_watch_pid *tasks;
	struct tier_watch *watch;
	__u64 start;
	unsigned int nr;

	if (tier_watch__open(e->t->ctx, &options, &watch)) {
		snprintf(e->watch_error, sizeof(e->watch_error), "%s",
			 tier_ctx__error(e->t->ctx)->message);
		return;
	}
	start = now_ns();
	sleep_until(start + window_ms * 1000000);
	e->window_s = (now_ns() - start) / 1e9;
	if (!tier_watch__tasks(watch, &tasks, &nr)) {
		e->watched = true;
		if (nr)
			e->task = tasks[0].task;
		free(tasks);
	}
	tier_watch__close(watch);
}

/* "mm->numa_scan_seq : 12" of /proc/PID/sched */
static __u64 scan_seq(unsigned int pid)
{
	char path[64], line[256];
	__u64 seq = ~0ULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/sched", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (colon && !strncmp(line, "mm->numa_scan_seq", 17))
			seq = strtoull(colon + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return seq;
}

static void add_up(struct explain *e)
{
	for (unsigned int i = 0; i < e->maps.nr; i++) {
		const struct vma *v = &e->maps.vma[i];

		for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++)
			e->bytes[nid] += v->bytes[nid];
		e->fast += v->fast_bytes;
		e->slow += v->slow_bytes;
		e->slow_by[v->obstacle] += v->slow_bytes;
		if (v->locked)
			e->slow_locked += v->slow_bytes;
		if (v->obstacle == OBSTACLE_NONE && v->mapmax > 1)
			*(vma_shares_cow(v) ? &e->slow_cow : &e->slow_shared) += v->slow_bytes;
	}
	e->total = e->fast + e->slow;
}

static __u64 faults_of(const struct explain *e, enum tier_verdict verdict)
{
	__u64 sum = 0;

	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++)
		if (tier_decision_verdict(d) == verdict)
			sum += e->task.faults[d];
	return sum;
}

static unsigned int top_reason(const struct explain *e, enum tier_verdict verdict)
{
	unsigned int best = 0;
	__u64 most = 0;

	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++)
		if (tier_decision_verdict(d) == verdict && e->task.faults[d] > most) {
			most = e->task.faults[d];
			best = d;
		}
	return best;
}

static void words_on_decisions(struct explain *e)
{
	__u64 promote = faults_of(e, TIER_VERDICT_PROMOTE), reject = faults_of(e, TIER_VERDICT_REJECT);
	__u64 kernel = faults_of(e, TIER_VERDICT_KERNEL);

	if (!e->watched) {
		say(e, "The policy's decisions could not be watched: %s.", e->watch_error);
		return;
	}
	if (!promote && !reject && !kernel) {
		say(e, "In %.1f s it had no hint fault on a slow page: either it did not touch its slow "
		    "memory, or the scanner did not mark any of it in that time.", e->window_s);
		return;
	}
	if (promote)
		say(e, "In %.1f s the policy promoted on %llu of its hint faults, mostly because: %s.",
		    e->window_s, promote, tier_decision__cause(top_reason(e, TIER_VERDICT_PROMOTE)) ?: "?");
	if (reject)
		say(e, "In %.1f s the policy refused %llu of its hint faults, mostly because: %s.",
		    e->window_s, reject, tier_decision__cause(top_reason(e, TIER_VERDICT_REJECT)) ?: "?");
	if (kernel)
		say(e, "In %.1f s the policy left %llu of its hint faults to the kernel's own algorithm.",
		    e->window_s, kernel);
}

/* Is it so much of the slow memory that it is worth a sentence? */
static bool matters(const struct explain *e, __u64 bytes)
{
	return bytes >= 1 << 20 || (e->slow && bytes * 10 > e->slow);
}

static void words_on_sharing(struct explain *e)
{
	if (matters(e, e->slow_locked))
		say(e, "%.1f MiB of the slow memory is locked (mlock): that keeps it from being demoted, "
		    "not from being promoted.", e->slow_locked / 1048576.0);
	/* The kernel tells the most shared page of a mapping, not how many are shared. */
	if (matters(e, e->slow_cow))
		say(e, "Up to %.1f MiB of the slow memory is shared copy-on-write with other processes: "
		    "the scanner leaves such pages alone.", e->slow_cow / 1048576.0);
	if (matters(e, e->slow_shared))
		say(e, "Up to %.1f MiB of the slow memory is shared with other processes (MAP_SHARED): "
		    "a hint fault of any of them can bring a page up.", e->slow_shared / 1048576.0);
}

static void words_on_cpuset(struct explain *e)
{
	char mems[128] = "";
	__u64 allowed = sys_mems_allowed(e->pid, mems, sizeof(mems)) & e->env.memory_nodes;

	if (allowed == e->env.memory_nodes)
		return;
	if (allowed & e->env.top_nodes)
		say(e, "Its cpuset allows memory on nodes %s only.", mems);
	else
		say(e, "Its cpuset allows memory on slow nodes only (%s): it gets no fast memory.", mems);
}

static void words(struct explain *e)
{
	double share = e->total ? 100.0 * e->slow / e->total : 0;

	out_begin_array(e->t->out, "words");
	say(e, "%s (%u) has %.1f MiB in memory, %.1f MiB of it (%.0f %%) on slow nodes.", e->comm, e->pid,
	    e->total / 1048576.0, e->slow / 1048576.0, share);
	if (!(e->env.memory_nodes & ~e->env.top_nodes))
		say(e, "This machine has no slow node: there is nothing to promote.");
	else if (!(e->env.numa_balancing & 2))
		say(e, "Memory tiering mode is off: no slow page is promoted ('tierctl doctor').");
	for (unsigned int o = 1; o < OBSTACLE_NR; o++)
		if (matters(e, e->slow_by[o]))
			say(e, "%.1f MiB of the slow memory cannot be promoted: %s.",
			    e->slow_by[o] / 1048576.0, obstacle_text(o));
	words_on_sharing(e);
	if (e->slow && !e->scan_seq)
		say(e, "The scanner has not finished a pass over it yet: it is young, sleeps, or is large.");
	if (e->slow && e->slow_by[OBSTACLE_NONE])
		words_on_decisions(e);
	words_on_cpuset(e);
	out_end(e->t->out);
}

static void emit_nodes(struct explain *e)
{
	struct out *out = e->t->out;

	out_begin_array(out, "nodes");
	for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++) {
		if (!e->bytes[nid])
			continue;
		out_begin_object(out, NULL);
		out_u64(out, "node", nid);
		out_str(out, "tier", e->env.top_nodes >> nid & 1 ? "fast" : "slow");
		out_u64(out, "size_bytes", e->bytes[nid]);
		out_double(out, "share_ratio", (double)e->bytes[nid] / e->total);
		out_end(out);
	}
	out_end(out);
}

static void emit_verdicts(struct explain *e)
{
	struct out *out = e->t->out;

	out_begin_array(out, "verdicts");
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
		if (!e->task.faults[d])
			continue;
		out_begin_object(out, NULL);
		out_str(out, "verdict", verdict_name(tier_decision_verdict(d)));
		out_str(out, "reason", tier_decision__name(d) ?: "unknown");
		out_u64(out, "faults", e->task.faults[d]);
		out_u64(out, "pages", e->task.pages[d]);
		out_str(out, "cause", tier_decision__cause(d));
		out_end(out);
	}
	out_end(out);
}

static int more_slow(const void *a, const void *b)
{
	const struct vma *x = a, *y = b;

	if (x->slow_bytes != y->slow_bytes)
		return x->slow_bytes < y->slow_bytes ? 1 : -1;
	return x->start < y->start ? -1 : 1;
}

static void emit_mappings(struct explain *e, bool addresses, unsigned int max)
{
	struct out *out = e->t->out;
	char text[32];

	qsort(e->maps.vma, e->maps.nr, sizeof(e->maps.vma[0]), more_slow);
	out_begin_array(out, "mappings");
	for (unsigned int i = 0; i < e->maps.nr && i < max; i++) {
		const struct vma *v = &e->maps.vma[i];

		if (!v->slow_bytes && max < e->maps.nr)
			break;
		out_begin_object(out, NULL);
		if (addresses) {
			snprintf(text, sizeof(text), "%llx", v->start);
			out_str(out, "start", text);
			snprintf(text, sizeof(text), "%llx", v->end);
			out_str(out, "end", text);
		}
		out_str(out, "what", v->what);
		out_str(out, "policy", v->policy);
		out_u64(out, "fast_bytes", v->fast_bytes);
		out_u64(out, "slow_bytes", v->slow_bytes);
		out_u64(out, "mapped_by", v->mapmax ? v->mapmax : 1);
		out_bool(out, "file", v->file);
		out_bool(out, "shared", v->shared);
		out_str(out, "obstacle", obstacle_name(v->obstacle));
		out_str(out, "why", v->obstacle ? obstacle_text(v->obstacle) :
			vma_shares_cow(v) ? "shared with other processes" : "");
		out_end(out);
	}
	out_end(out);
}

/* Keep only the mapping that holds @addr. False if there is none. */
static bool keep_addr(struct maps *maps, __u64 addr)
{
	for (unsigned int i = 0; i < maps->nr; i++)
		if (addr >= maps->vma[i].start && addr < maps->vma[i].end) {
			maps->vma[0] = maps->vma[i];
			maps->nr = 1;
			return true;
		}
	return false;
}

/* Hexadecimal, with or without 0x, as /proc/PID/maps has it. */
static bool parse_addr(const char *text, __u64 *addr)
{
	char *end;

	errno = 0;
	*addr = strtoull(text, &end, 16);
	return isxdigit((unsigned char)*text) && !*end && !errno;
}

static int prepare(struct explain *e, const struct args *args)
{
	struct opts_error error;
	__u64 pid, addr = 0;
	int err;

	if (opts_number("PID", args->words[0], 1, 4194304, &pid, &error))
		return failure(e->t, TIER_CLASS_USAGE, "", "%s", error.message);
	if (args->nr_words > 1 && !parse_addr(args->words[1], &addr))
		return failure(e->t, TIER_CLASS_USAGE, "Write it as /proc/PID/maps does.",
			       "ADDRESS takes a hexadecimal number, not '%.80s'", args->words[1]);
	e->pid = pid;
	if (tier_env__probe(e->t->ctx, &e->env))
		return failure_ctx(e->t);
	if (sys_read(e->comm, sizeof(e->comm), "/proc/%u/comm", e->pid))
		return failure(e->t, TIER_CLASS_USAGE, "ps -e lists the processes.",
			       "there is no process %u", e->pid);
	err = maps_read(e->pid, e->env.top_nodes, &e->maps);
	if (err)
		return failure(e->t, err == -EACCES || err == -EPERM ? TIER_CLASS_PERMISSION :
			       TIER_CLASS_FAILED, err == -EACCES ? "Run it with sudo." : "",
			       "reading /proc/%u/numa_maps: %s", e->pid, strerror(-err));
	if (args->nr_words > 1 && !keep_addr(&e->maps, addr))
		return failure(e->t, TIER_CLASS_USAGE, "tierctl explain PID --vma --all lists them.",
			       "no mapping of process %u holds address %llx", e->pid, addr);
	return TIER_CLASS_OK;
}

static int run(struct tierctl *t, const struct args *args)
{
	struct explain *e = calloc(1, sizeof(*e));
	bool addresses = args->opt[VMA].given || args->nr_words > 1;
	int code;

	if (!e)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	e->t = t;
	code = prepare(e, args);
	if (code)
		goto out;
	add_up(e);
	e->scan_seq = scan_seq(e->pid);
	if (e->slow_by[OBSTACLE_NONE] && e->env.module_loaded)
		watch(e, args->opt[WINDOW].given ? args->opt[WINDOW].number : 3000);
	else
		snprintf(e->watch_error, sizeof(e->watch_error), "no policy is in force");
	out_u64(t->out, "pid", e->pid);
	out_str(t->out, "command", e->comm);
	out_u64(t->out, "fast_bytes", e->fast);
	out_u64(t->out, "slow_bytes", e->slow);
	if (e->scan_seq == ~0ULL)
		out_str(t->out, "scan_passes", NULL);
	else
		out_u64(t->out, "scan_passes", e->scan_seq);
	out_bool(t->out, "watched", e->watched);
	out_double(t->out, "window_s", e->window_s);
	words(e);
	emit_nodes(e);
	emit_verdicts(e);
	emit_mappings(e, addresses, args->opt[ALL].given ? ~0U : 10);
	code = show(t, views);
out:
	maps_free(&e->maps);
	free(e);
	return code;
}

const struct command cmd_explain = {
	.name = "explain",
	.args = "PID [ADDRESS]",
	.group = "Watch",
	.summary = "where a process's memory is, and why it is not promoted",
	.doc = "Says in plain words how much of a process's memory is slow, how much of that can never "
	"be promoted and why (memory policy, read-only files, hugetlb, device memory), how much is "
	"locked or shared, whether its cpuset excludes fast nodes, and what the "
	"policy in force decided about its hint faults while it was watched. Then the nodes, the "
	"verdicts by reason, and the mappings with most slow memory. With ADDRESS only the mapping "
	"that holds it.\n\n"
	"What the scanner leaves alone is worked out by the kernel's rules from /proc/PID/numa_maps "
	"and smaps; reading them stops the process's memory map for a moment.",
	.examples = "  tierctl explain 1234\n  tierctl explain 1234 --vma --all --json\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 2,
	.words = WORDS_PID,
	.run = run,
};
