// SPDX-License-Identifier: GPL-2.0
/* Counters as metric families; names, units and help come from the tables. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics.h"

#include <tier/hist.h>

static bool ends_with(const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	return len > tail_len && !strcmp(text + len - tail_len, tail) &&
	       text[len - tail_len - 1] == '_';
}

/* @decimals: of the value in the metric's unit; 0 if that is the value as it is. */
static const struct {
	const char *tail, *unit;
	int decimals;
} metric_units[] = { { "_ns", "seconds", 9 }, { "_ms", "seconds", 3 }, { "_per_s", "per_second", 0 } };

#define NR_METRIC_UNITS	(sizeof(metric_units) / sizeof(metric_units[0]))

static size_t metric_unit(const char *name)
{
	size_t i;

	for (i = 0; i < NR_METRIC_UNITS && !ends_with(name, metric_units[i].tail + 1); i++)
		;
	return i;
}

void metric_name(const char *prefix, const char *name, char *buf, size_t size)
{
	size_t i = metric_unit(name);

	if (i < NR_METRIC_UNITS)
		snprintf(buf, size, "%s%.*s_%s", prefix,
			 (int)(strlen(name) - strlen(metric_units[i].tail)), name, metric_units[i].unit);
	else
		snprintf(buf, size, "%s%s", prefix, name);
}

/* OpenMetrics wants a unit to be the name's last word, or not to be declared. */
static void begin_family(struct out *out, const char *name, const char *type, const char *unit,
			 const char *help)
{
	size_t i = metric_unit(name);
	char full[96];

	metric_name("tier_", name, full, sizeof(full));
	if (i < NR_METRIC_UNITS && metric_units[i].decimals)
		unit = metric_units[i].unit;
	out_begin_object(out, NULL);
	out_str(out, "name", full);
	out_str(out, "type", type);
	out_str(out, "unit", unit && ends_with(full, unit) ? unit : NULL);
	out_str(out, "help", help);
	out_begin_array(out, "samples");
}

static void end_family(struct out *out)
{
	out_end(out);
	out_end(out);
}

static void begin_sample(struct out *out, const char *suffix)
{
	out_begin_object(out, NULL);
	out_str(out, "suffix", suffix);
	out_begin_object(out, "labels");
}

static void label_u64(struct out *out, const char *name, __u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	out_str(out, name, text);
}

/* @name: of the family; its unit says what the value is counted in. */
static void end_sample(struct out *out, const char *name, __u64 value)
{
	size_t unit = metric_unit(name);
	int decimals = unit < NR_METRIC_UNITS ? metric_units[unit].decimals : 0;

	out_end(out);
	if (decimals)
		out_scaled(out, "value", value, decimals);
	else
		out_u64(out, "value", value);
	out_end(out);
}

static void plain(struct out *out, const char *name, const char *type, const char *unit,
		  const char *help, __u64 value)
{
	begin_family(out, name, type, unit, help);
	begin_sample(out, !strcmp(type, "counter") ? "_total" : "");
	end_sample(out, name, value);
	end_family(out);
}

static void info(struct out *out, const struct tier_stats *s)
{
	begin_family(out, "policy", "info", NULL, "policy in force, or ejected");
	begin_sample(out, "_info");
	out_str(out, "policy", s->policy);
	end_sample(out, "policy", 1);
	end_family(out);
	begin_family(out, "node", "info", NULL, "tier of each node");
	for (unsigned int nid = 0; nid < s->nr_nodes; nid++) {
		if (!(s->nodes >> nid & 1))
			continue;
		begin_sample(out, "_info");
		label_u64(out, "node", nid);
		out_str(out, "tier", node_tier(s, nid));
		end_sample(out, "node", 1);
	}
	end_family(out);
}

/* Pairs that never saw a fault are left out: nodes squared times reasons is many. */
static void decided(struct out *out, const struct tier_stats *s, bool pages)
{
	begin_family(out, pages ? "decided_pages" : "decided_faults", "counter",
		     pages ? "pages" : "faults",
		     pages ? "pages of slow-tier hint faults, by verdict and reason" :
			     "slow-tier hint faults, by verdict and reason");
	for (unsigned int i = 0; i < s->nr_nodes * s->nr_nodes; i++)
		for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
			if (!s->pairs[i].faults[d])
				continue;
			begin_sample(out, "_total");
			label_u64(out, "source_node", i / s->nr_nodes);
			label_u64(out, "target_node", i % s->nr_nodes);
			out_str(out, "verdict", verdict_name(tier_decision_verdict(d)));
			out_str(out, "reason", tier_decision__name(d) ?: "unknown");
			end_sample(out, pages ? "decided_pages" : "decided_faults",
				   pages ? s->pairs[i].pages[d] : s->pairs[i].faults[d]);
		}
	end_family(out);
}

/* One bucket per doubling: the full resolution is for `tierctl hist`. */
static void latency(struct out *out, const struct tier_stats *s)
{
	begin_family(out, "latency_ms", "histogram", "ms",
		     "pages by time from scan to hint fault, per target node");
	for (unsigned int nid = 0; nid < s->nr_nodes; nid++) {
		__u64 sum = 0;
		char bound[24];

		if (!(s->nodes >> nid & 1))
			continue;
		for (__u32 slot = 0; slot <= TIER_HIST_LAST; slot++) {
			sum += s->hist[nid].pages[slot];
			if (slot % 4 != 3)
				continue;
			begin_sample(out, "_bucket");
			label_u64(out, "node", nid);
			snprintf(bound, sizeof(bound), "%.3f", tier_hist_high(slot) / 1e3);
			out_str(out, "le", slot == TIER_HIST_LAST ? "+Inf" : bound);
			end_sample(out, "pages", sum);	/* a bucket's unit is what it counts */
		}
	}
	end_family(out);
}

static void node_values(struct out *out, const struct tier_stats *s)
{
	static const struct {
		const char *name, *type, *unit, *help;
	} kinds[] = {
		{ "threshold_ms", "gauge", "ms", "hot threshold in force, 0: the policy has none" },
		{ "rate_limit_pages_per_s", "gauge", "pages_per_second",
		  "rate limit in force, 0: none" },
		{ "candidates_pages", "counter", "pages", "pages that passed the threshold" },
	};

	for (unsigned int k = 0; k < 3; k++) {
		begin_family(out, kinds[k].name, kinds[k].type, kinds[k].unit, kinds[k].help);
		for (unsigned int nid = 0; nid < s->nr_nodes; nid++) {
			const struct tier_node *n = &s->node[nid];

			if (!(s->nodes >> nid & 1))
				continue;
			begin_sample(out, k == 2 ? "_total" : "");
			label_u64(out, "node", nid);
			end_sample(out, kinds[k].name, k == 0 ? n->threshold_ms :
				   k == 1 ? n->limit_pages_per_s : n->candidates_pages);
		}
		end_family(out);
	}
}

static void module(struct out *out, const struct tier_stats *s)
{
#define TIER_STAT_MODULE(sym, name, unit, help) \
	plain(out, "module_" name, "counter", unit, help, \
	      s->module[TIER_EV_##sym] - s->module_base[TIER_EV_##sym]);
#include <tier/stats.def>
}

static void moves_family(struct out *out, const struct tier_stats *s, unsigned int counter,
			 const char *name, const char *unit, const char *help)
{
	begin_family(out, name, "counter", unit, help);
	for (unsigned int i = 0; i < s->nr_nodes * s->nr_nodes; i++) {
		if (!s->moves[i].count[counter])
			continue;
		begin_sample(out, "_total");
		label_u64(out, "source_node", i / s->nr_nodes);
		label_u64(out, "target_node", i % s->nr_nodes);
		end_sample(out, name, s->moves[i].count[counter]);
	}
	end_family(out);
}

static void observer(struct out *out, const struct tier_stats *s)
{
	if (!s->observer)
		return;
#define TIER_STAT_MOVE(sym, name, unit, help) \
	moves_family(out, s, TIER_MV_##sym, name, unit, help);
#define TIER_STAT_SCAN(sym, name, unit, help) \
	plain(out, name, "counter", unit, help, s->scans.count[TIER_SC_##sym]);
#define TIER_STAT_SKIP(sym, name, unit, help) \
	plain(out, name, "counter", unit, help, s->scans.skip[TIER_SK_##sym]);
#include <tier/stats.def>
}

static void requests(struct out *out, const struct tier_stats *s)
{
	if (!s->requesting)
		return;
#define TIER_STAT_REQUEST(sym, name, unit, help) \
	plain(out, name, "counter", unit, help, s->request.count[TIER_RQ_##sym]);
#include <tier/stats.def>
}

void metrics_emit_stats(struct out *out, const struct tier_stats *s)
{
	struct totals totals;

	stats_totals(s, &totals);
	info(out, s);
	decided(out, s, false);
	decided(out, s, true);
	latency(out, s);
	node_values(out, s);
	module(out, s);
	observer(out, s);
	requests(out, s);
	plain(out, "accounted", "gauge", NULL,
	      "1 if each fault handed to the policy is counted under one verdict",
	      !stats_missing(&totals));
}

int metrics_emit(struct tier_ctx *ctx, struct out *out)
{
	struct tier_stats *s;
	int err = tier_stats__read(ctx, &s);

	if (err && err != -ENOENT)
		return err;
	out_begin_array(out, "families");
	plain(out, "policy_in_force", "gauge", NULL, "1 if a policy is in force",
	      !err && !s->ejected);
	if (!err) {
		plain(out, "policy_ejected", "gauge", NULL,
		      "1 if the module took the policy out of force: the kernel decides", s->ejected);
		metrics_emit_stats(out, s);
		tier_stats__free(s);
	}
	out_end(out);
	return 0;
}

char *metrics_text(struct tier_ctx *ctx, enum out_format format, size_t *size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, size);
	struct out *out = to ? out__new(to, format, false) : NULL;
	int err = -ENOMEM;

	if (out)
		err = metrics_emit(ctx, out);
	if (!err)
		err = out_flush(out, NULL);
	out__free(out);
	if (to && fclose(to))
		err = -ENOMEM;
	if (!err)
		return text;
	free(text);
	return NULL;
}

/* The collector must never see half a file: write beside it, then rename. */
int metrics_textfile(struct tier_ctx *ctx, const char *path)
{
	char temp[4096], *text;
	size_t size;
	int fd, err = 0;

	text = metrics_text(ctx, OUT_PROMETHEUS, &size);
	if (!text)
		return -EIO;
	if (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >= (int)sizeof(temp)) {
		free(text);
		return -ENAMETOOLONG;
	}
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(text);
		return err;
	}
	if (fchmod(fd, 0644) || write(fd, text, size) != (ssize_t)size)
		err = errno ? -errno : -ENOSPC;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(temp, path))
		err = -errno;
	if (err)
		unlink(temp);
	free(text);
	return err;
}
