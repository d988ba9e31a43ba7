// SPDX-License-Identifier: GPL-2.0
/* Reading: status, parameters, counters. Changes nothing but what a killed load left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "internal.h"

static __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* ---- parameters ---- */

static __u64 default_of(const struct tier_record *record, const char *name, __u64 otherwise)
{
	for (unsigned int i = 0; record && i < record->nr_params; i++)
		if (!strcmp(record->params[i].name, name))
			return record->params[i].def;
	return otherwise;
}

static int read_values(struct tier_ctx *ctx, __u32 map_id, const struct tier_record *record,
		       struct tier_param_value **values, unsigned int *nr)
{
	struct tier_live live;
	int err;

	*values = NULL;
	*nr = 0;
	err = tier_live_open(ctx, map_id, &live);
	if (err || !live.info)
		return err;
	*values = calloc(live.info->nr_params + 1, sizeof(**values));
	if (!*values) {
		tier_live_close(&live);
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "get: out of memory");
	}
	for (unsigned int i = 0; i < live.info->nr_params; i++) {
		struct tier_param_value *value = &(*values)[i];

		value->info = live.info->params[i];
		value->value = value->info.def;
		value->info.def = default_of(record, value->info.name, value->value);
		live.info->params[i].help = NULL;	/* now theirs */
	}
	*nr = live.info->nr_params;
	tier_live_close(&live);
	return 0;
}

/* Shared lock: a load or swap in progress is waited for. Others than root go without. */
static int lock_for_reading(struct tier_ctx *ctx)
{
	return geteuid() || access(ctx->run_dir, F_OK) ? 0 : tier_lock(ctx, false);
}

static int active_or_fail(struct tier_ctx *ctx, const char *what, struct tier_active *active)
{
	int err = tier_active_open(ctx, active);

	if (!err && active->map_id)
		return 0;
	tier_active_close(active);
	if (err == -EACCES || err == -EPERM)
		return tier_fail(ctx, TIER_CLASS_PERMISSION, err, TIER_READER_HINT, "%s: %s: %s",
				 what, ctx->pin_dir, strerror(-err));
	return tier_nothing_loaded(ctx, what);
}

int tier_get(struct tier_ctx *ctx, struct tier_param_value **values, unsigned int *nr)
{
	struct tier_journal journal;
	struct tier_active active;
	int err;

	tier_clear_error(ctx);
	*values = NULL;
	*nr = 0;
	err = lock_for_reading(ctx);
	if (err)
		return err;
	err = active_or_fail(ctx, "get", &active);
	if (!err) {
		bool known = !tier_journal_read(ctx, &journal);

		err = read_values(ctx, active.map_id, known ?
				  tier_journal_find(&journal, active.map_id) : NULL, values, nr);
		tier_active_close(&active);
	}
	tier_unlock(ctx);
	return err;
}

void tier_param_values__free(struct tier_param_value *values, unsigned int nr)
{
	for (unsigned int i = 0; values && i < nr; i++)
		free(values[i].info.help);
	free(values);
}

/* ---- status ---- */

static void line_text(const char *text, const char *name, char *buf, size_t size)
{
	size_t len = strlen(name);
	const char *line = text;

	buf[0] = '\0';
	while (line && *line) {
		if (!strncmp(line, name, len) && line[len] == ' ') {
			tier_copy(buf, size, line + len + 1);
			buf[strcspn(buf, "\n")] = '\0';
			return;
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
}

/* The module's, or what was kept of one that has been removed. */
static void read_exit(struct tier_ctx *ctx, struct tier_exit_record *record)
{
	char text[4096], number[32], *kept;

	if (tier_module_text("exit", text, sizeof(text)) <= 0) {
		if (tier_memo__read(ctx, TIER_MEMO_EXIT, &kept)) {
			tier_clear_error(ctx);
			return;
		}
		tier_copy(text, sizeof(text), kept);
		free(kept);
	}
	line_text(text, "kind", record->kind, sizeof(record->kind));
	line_text(text, "policy", record->policy, sizeof(record->policy));
	line_text(text, "message", record->message, sizeof(record->message));
	line_text(text, "error", number, sizeof(number));
	record->error = strtol(number, NULL, 10);
	tier_line_value(text, "time_ns", &record->time_ns);
	tier_module_parse_counters(text, record->module);
}

static void read_module(struct tier_ctx *ctx, struct tier_status *status, char *state, size_t size)
{
	char text[32];

	state[0] = '\0';
	tier_module_text("state", state, size);
	tier_module_text("policy", status->policy, sizeof(status->policy));
	tier_module_text("owner", status->owner, sizeof(status->owner));
	if (tier_module_text("since", text, sizeof(text)) > 0)
		status->since_ns = strtoull(text, NULL, 10);
	if (status->since_ns)
		status->age_ns = clock_ns(CLOCK_BOOTTIME) - status->since_ns;
	if (tier_module_text("tiering", text, sizeof(text)) > 0)
		status->tiering = text[0] == '1';
	read_exit(ctx, &status->exit);
}

static void read_journal(struct tier_status *status, const struct tier_journal *journal)
{
	const struct tier_record *record = tier_journal_find(journal, status->map_id);

	if (record)
		tier_copy(status->object, sizeof(status->object), record->object);
	status->module_inserted = journal->module_inserted;
	status->bpffs_mounted = journal->bpffs_mounted;
	for (unsigned int i = 0; i < journal->nr_knobs; i++) {
		struct tier_knob *knob = &status->knobs[status->nr_knobs];

		if (!strcmp(journal->knobs[i].saved, journal->knobs[i].set))
			continue;
		*knob = journal->knobs[i];
		if (tier_read_text(knob->path, knob->now, sizeof(knob->now)) < 0)
			knob->now[0] = '\0';
		status->nr_knobs++;
	}
}

static int fill_status(struct tier_ctx *ctx, struct tier_status *status)
{
	struct tier_journal journal;
	struct tier_active active;
	char state[16], path[192];
	int err, known;

	read_module(ctx, status, state, sizeof(state));
	known = tier_journal_read(ctx, &journal);
	err = tier_active_open(ctx, &active);
	if (err && err != -ENOENT)
		return tier_fail(ctx, err == -EACCES || err == -EPERM ? TIER_CLASS_PERMISSION :
				 TIER_CLASS_FAILED, err, TIER_READER_HINT, "status: %s/link: %s",
				 ctx->pin_dir, strerror(-err));
	if (err || !active.map_id) {
		tier_active_close(&active);
		status->state = state[0] && strcmp(state, "idle") ? TIER_STATE_FOREIGN :
				tier_pins_exist(ctx) ? TIER_STATE_STALE : TIER_STATE_NONE;
		return 0;
	}
	status->state = strcmp(state, "ejected") ? TIER_STATE_ACTIVE : TIER_STATE_EJECTED;
	status->link_id = active.link_id;
	status->map_id = active.map_id;
	tier_active_close(&active);
	tier_pin_path(ctx, path, sizeof(path), "observer/tier_moves");
	status->observer = !access(path, F_OK);
	if (!known)
		read_journal(status, &journal);
	return read_values(ctx, status->map_id, known ? NULL :
			   tier_journal_find(&journal, status->map_id), &status->params,
			   &status->nr_params);
}

static int recover_first(struct tier_ctx *ctx)
{
	int err;

	tier_unlock(ctx);
	err = tier_lock(ctx, true);
	return err ?: tier_recover(ctx);
}

int tier_status__read(struct tier_ctx *ctx, struct tier_status **result)
{
	struct tier_status *status;
	int err;

	tier_clear_error(ctx);
	*result = NULL;
	status = calloc(1, sizeof(*status));
	if (!status)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "status: out of memory");
	err = lock_for_reading(ctx);
	if (!err && !geteuid() && !ctx->opts.read_only && tier_recover_needed(ctx))
		err = recover_first(ctx);
	if (!err) {
		tier_clear_error(ctx);
		err = fill_status(ctx, status);
	}
	tier_unlock(ctx);
	if (err) {
		tier_status__free(status);
		return err;
	}
	*result = status;
	return 0;
}

void tier_status__free(struct tier_status *status)
{
	if (!status)
		return;
	tier_param_values__free(status->params, status->nr_params);
	free(status);
}

/* ---- counters ---- */

static int map_fails(struct tier_ctx *ctx, int err, const char *pin)
{
	return tier_fail(ctx, err == -EACCES || err == -EPERM ? TIER_CLASS_PERMISSION :
			 TIER_CLASS_FAILED, err, "Run tierctl status.", "read the counters in %s: %s",
			 pin, strerror(-err));
}

/* All entries of a per-CPU array, summed over CPUs as arrays of u64. */
static int read_percpu(struct tier_ctx *ctx, const char *pin, void *sums, __u32 entries,
		       size_t value_size)
{
	int cpus = libbpf_num_possible_cpus(), fd, err = 0;
	size_t words = value_size / sizeof(__u64);
	__u64 *values, *sum = sums;

	fd = tier_pin_get(ctx, "%s", pin);
	if (fd < 0)
		return fd;
	values = cpus > 0 ? calloc(cpus, value_size) : NULL;
	if (!values) {
		close(fd);
		return -ENOMEM;
	}
	for (__u32 i = 0; i < entries && !err; i++) {
		if (bpf_map_lookup_elem(fd, &i, values)) {
			err = -errno;
			break;
		}
		for (int cpu = 0; cpu < cpus; cpu++)
			for (size_t w = 0; w < words; w++)
				sum[i * words + w] += values[cpu * words + w];
	}
	free(values);
	close(fd);
	return err;
}

static int read_array(struct tier_ctx *ctx, const char *pin, void *values, __u32 entries,
		      size_t value_size)
{
	int fd = tier_pin_get(ctx, "%s", pin), err = 0;

	if (fd < 0)
		return fd;
	for (__u32 i = 0; i < entries && !err; i++)
		if (bpf_map_lookup_elem(fd, &i, (char *)values + i * value_size))
			err = -errno;
	close(fd);
	return err;
}

/* Outcomes first: what is counted as done is then never more than what was asked. */
static int read_requests(struct tier_ctx *ctx, struct tier_stats *stats)
{
	struct tier_request_counts asked = {};
	int err;

	err = read_array(ctx, "maps/tier_request_results", &stats->request, 1,
			 sizeof(stats->request));
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "tier_request_results");
	err = read_percpu(ctx, "maps/tier_request_counts", &asked, 1, sizeof(asked));
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "tier_request_counts");
	stats->requesting = !err;
	for (unsigned int i = 0; i < TIER_NR_RQ; i++)
		stats->request.count[i] += asked.count[i];
	return 0;
}

static int read_counters(struct tier_ctx *ctx, struct tier_stats *stats)
{
	__u32 nr = stats->nr_nodes;
	int err;

	tier_module_counters(stats->module_before);
	err = read_percpu(ctx, "maps/tier_counts", stats->pairs, nr * nr,
			  sizeof(struct tier_counts));
	/* A policy not made with the kit has none of these: it counts nothing. */
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "tier_counts");
	tier_module_counters(stats->module);
	stats->time_ns = clock_ns(CLOCK_MONOTONIC);

	err = read_percpu(ctx, "maps/tier_hist", stats->hist, nr, sizeof(struct tier_hist));
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "tier_hist");
	err = read_array(ctx, "maps/tier_nodes", stats->node, nr, sizeof(struct tier_node));
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "tier_nodes");

	err = read_percpu(ctx, "observer/tier_moves", stats->moves, nr * nr,
			  sizeof(struct tier_moves)) ?:
	      read_percpu(ctx, "observer/tier_scans", &stats->scans, 1,
			  sizeof(struct tier_scans)) ?:
	      read_percpu(ctx, "observer/tier_scan_hist", &stats->scan_hist, 1,
			  sizeof(struct tier_scan_hist));
	if (err && err != -ENOENT)
		return map_fails(ctx, err, "observer");
	stats->observer = !err;
	return read_requests(ctx, stats);
}

static struct tier_stats *alloc_stats(__u32 nr)
{
	struct tier_stats *stats = calloc(1, sizeof(*stats));

	if (!stats)
		return NULL;
	stats->nr_nodes = nr;
	stats->pairs = calloc(nr * nr, sizeof(*stats->pairs));
	stats->hist = calloc(nr, sizeof(*stats->hist));
	stats->node = calloc(nr, sizeof(*stats->node));
	stats->moves = calloc(nr * nr, sizeof(*stats->moves));
	if (stats->pairs && stats->hist && stats->node && stats->moves)
		return stats;
	tier_stats__free(stats);
	return NULL;
}

int tier_stats_read_raw(struct tier_ctx *ctx, struct tier_stats **result)
{
	struct tier_journal journal;
	struct tier_stats *stats;
	struct tier_active active;
	struct tier_nodes nodes;
	char state[16];
	__u32 map_id;
	int err;

	*result = NULL;
	err = active_or_fail(ctx, "stats", &active);
	if (err)
		return err;
	map_id = active.map_id;
	tier_active_close(&active);

	tier_nodes__probe(&nodes);
	stats = alloc_stats(nodes.nr);
	if (!stats)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "stats: out of memory");
	stats->nodes = nodes.online;
	stats->top_nodes = nodes.top;
	tier_module_text("policy", stats->policy, sizeof(stats->policy));
	stats->ejected = tier_module_text("state", state, sizeof(state)) > 0 &&
			 !strcmp(state, "ejected");
	if (!tier_journal_read(ctx, &journal))
		memcpy(stats->module_base, journal.module_base, sizeof(stats->module_base));
	err = read_counters(ctx, stats) ?: tier_tenures_read(ctx, map_id, stats);
	if (err) {
		tier_stats__free(stats);
		return err;
	}
	*result = stats;
	return 0;
}

int tier_stats__read(struct tier_ctx *ctx, struct tier_stats **result)
{
	int err;

	tier_clear_error(ctx);
	*result = NULL;
	err = lock_for_reading(ctx);
	if (err)
		return err;
	err = tier_stats_read_raw(ctx, result);
	if (!err)
		err = tier_base_subtract(ctx, *result);
	if (err) {
		tier_stats__free(*result);
		*result = NULL;
	}
	tier_unlock(ctx);
	return err;
}

void tier_stats__free(struct tier_stats *stats)
{
	if (!stats)
		return;
	free(stats->pairs);
	free(stats->hist);
	free(stats->node);
	free(stats->moves);
	free(stats->tenures);
	free(stats);
}
