// SPDX-License-Identifier: GPL-2.0
/* tierctl metrics: counters for a monitoring system. */
#include <string.h>

#include "metrics.h"

enum { LISTEN, TEXTFILE };

static const struct opt opts[] = {
	[LISTEN] = { "listen", 'l', OPT_TEXT, "[ADDR:]PORT",
		"serve http://ADDR:PORT/metrics until stopped; without ADDR on the loopback only",
		0, 0, NULL },
	[TEXTFILE] = { "textfile", 't', OPT_TEXT, "FILE",
		"write FILE for node_exporter's textfile collector (name it *.prom)", 0, 0, NULL },
	{ 0 },
};

static int serve(struct tierctl *t, const char *where)
{
	struct metrics_http *http;
	int code;

	stop_on_signals();
	t->service = true;
	code = metrics_http__start(t, "--listen", where, &http);
	if (code)
		return code;
	note(t, "serving /metrics on %s; Ctrl-C ends it", where);
	while (sleep_until(now_ns() + 3600 * 1000000000ULL))
		;
	metrics_http__stop(http);
	return TIER_CLASS_OK;
}

static int print(struct tierctl *t)
{
	struct out *out = t->json ? t->out : out__new(stdout, OUT_OPENMETRICS, false);
	int code = TIER_CLASS_OK, err;

	if (!out)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	if (metrics_emit(t->ctx, out))
		code = failure_ctx(t);
	else if ((err = out_flush(out, NULL)))
		code = failure(t, TIER_CLASS_FAILED, "", "writing the output: %s", strerror(-err));
	if (out != t->out)
		out__free(out);
	return code;
}

static int run(struct tierctl *t, const struct args *args)
{
	int err;

	if (args->opt[LISTEN].given && args->opt[TEXTFILE].given)
		return failure(t, TIER_CLASS_USAGE, "", "--listen and --textfile exclude each other");
	if (args->opt[LISTEN].given)
		return serve(t, args->opt[LISTEN].text);
	if (!args->opt[TEXTFILE].given)
		return print(t);
	err = metrics_textfile(t->ctx, args->opt[TEXTFILE].text);
	if (err)
		return failure(t, TIER_CLASS_FAILED, "", "writing %s: %s", args->opt[TEXTFILE].text,
			       strerror(-err));
	return TIER_CLASS_OK;
}

const struct command cmd_metrics = {
	.name = "metrics",
	.group = "Watch",
	.summary = "counters for a monitoring system (OpenMetrics)",
	.doc = "Prints all counters once as OpenMetrics text, or as JSON with --json, which changes "
	"nothing of what follows; with --listen serves them over HTTP "
	"(OpenMetrics or the older Prometheus format, as the client asks), with --textfile writes "
	"them for node_exporter. man tierctl-counters names all "
	"counters and says what bumps them. "
	"Without a policy there is one metric, tier_policy_in_force 0; with one that the module took "
	"out of force, tier_policy_in_force 0 and tier_policy_ejected 1.\n\n"
	"The endpoint has no access control: leave it on the loopback or put a proxy in front.",
	.examples =
	"  tierctl metrics\n"
	"  tierctl metrics --listen 9464\n"
	"  tierctl metrics --textfile /var/lib/prometheus/node-exporter/tier.prom\n",
	.opts = opts,
	.readers = "",
	.run = run,
};
