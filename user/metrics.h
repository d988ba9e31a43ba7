/* SPDX-License-Identifier: GPL-2.0 */
/* Counters as metric families, for the metrics command and the daemon. */
#ifndef TIER_METRICS_H
#define TIER_METRICS_H

#include "emit.h"

/*
 * A counter's name as metrics have it: Prometheus wants whole words and seconds, so _ns,
 * _ms and _per_s become _seconds and _per_second.
 */
void metric_name(const char *prefix, const char *name, char *buf, size_t size);

/*
 * Array "families" of the open document. Without a policy in force that is one
 * gauge that says so; other failures of reading are returned, unreported.
 */
int metrics_emit(struct tier_ctx *ctx, struct out *out);

/* The families of one reading, into the open array. */
void metrics_emit_stats(struct out *out, const struct tier_stats *stats);

/* One reading as text in freshly allocated memory, or NULL. */
char *metrics_text(struct tier_ctx *ctx, enum out_format format, size_t *size);

/* ---- metrics_http.c ---- */
struct metrics_http;

/*
 * Serve /metrics on @where ("9464", "ADDR:PORT", "[ADDR6]:PORT"; a bare port is
 * on the loopback). @what names where that was said: "--listen". 0 or an exit code;
 * then already reported.
 */
int metrics_http__start(struct tierctl *t, const char *what, const char *where,
			struct metrics_http **http);
void metrics_http__stop(struct metrics_http *http);

/* Write @path atomically in the Prometheus text format. 0 or a negative errno. */
int metrics_textfile(struct tier_ctx *ctx, const char *path);

#endif /* TIER_METRICS_H */
