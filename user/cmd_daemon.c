// SPDX-License-Identifier: GPL-2.0
/* tierctl daemon: promotions that no fault carries out, metrics, policy at boot. */
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "metrics.h"
#include "readers.h"

enum { CONFIG, POLL, LIMIT, METRICS, LOAD_ONLY };

static const struct opt opts[] = {
	[CONFIG] = { "config", 'c', OPT_TEXT, "FILE",
		"read FILE and FILE.d/*.conf instead of " CONF_FILE, 0, 0, NULL },
	[POLL] = { "poll-ms", 'p', OPT_NUMBER, "N", "look for requests every N ms", 1, 1000, NULL },
	[LIMIT] = { "limit-mbps", 'L', OPT_NUMBER, "N",
		"move at most N MiB/s to each node, 0: no limit but the policy's", 0, 1 << 20, NULL },
	[METRICS] = { "metrics", 'm', OPT_TEXT, "[ADDR:]PORT", "serve /metrics there as well", 0, 0, NULL },
	[LOAD_ONLY] = { "load-only", 0, OPT_FLAG, NULL,
		"load the configured policy and end; the rest then needs fewer rights", 0, 0, NULL },
	{ 0 },
};

/* Programs stop asking this long after the daemon was last seen. */
#define LISTEN_MS	2000
#define SECOND_NS	1000000000ULL

static int resolve(struct tierctl *t, const struct args *args, struct conf *conf)
{
	static const struct {
		int opt;
		enum conf_key key;
	} pairs[] = { { POLL, CONF_POLL_MS }, { LIMIT, CONF_LIMIT_MBPS }, { METRICS, CONF_METRICS } };
	bool named = args->opt[CONFIG].given;
	int code;

	code = conf_read(t, conf, named ? args->opt[CONFIG].text : CONF_FILE, named);
	for (unsigned int i = 0; i < 3 && !code; i++) {
		const struct opt_value *value = &args->opt[pairs[i].opt];
		char number[24], from[32];

		if (!value->given)
			continue;
		snprintf(number, sizeof(number), "%llu", value->number);
		snprintf(from, sizeof(from), "--%s", opts[pairs[i].opt].name);
		code = conf_set(t, conf, pairs[i].key,
				opts[pairs[i].opt].kind == OPT_NUMBER ? number : value->text, from);
	}
	return code;
}

/* Is there room for a policy? An operator's choice stays. 0 or an exit code. */
static int is_free(struct tierctl *t, const char *policy, bool *free)
{
	struct tier_status *status;

	if (tier_status__read(t->ctx, &status))
		return failure_ctx(t);
	*free = status->state == TIER_STATE_NONE;
	if (!*free && strcmp(status->policy, policy))
		note(t, "policy %s is there already; %s of the configuration is not loaded",
		     *status->policy ? status->policy : "(none, but pins of one)", policy);
	tier_status__free(status);
	return TIER_CLASS_OK;
}

/* The policy that was in force before the daemon was restarted for it, or the configured one. */
static int load_policy(struct tierctl *t, const struct conf *conf)
{
	const char *policy = conf->value[CONF_POLICY].text;
	struct tier_setting set[CONF_MAX_SET];
	struct saved saved = { 0 };
	unsigned int nr = conf->nr_set;
	bool free = false, again = keeper_take_over(t, &saved);
	int code = TIER_CLASS_OK;

	if (again)
		policy = saved_source(&saved);
	for (unsigned int i = 0; i < nr; i++)
		set[i] = (struct tier_setting){ conf->set[i].name, conf->set[i].value };
	if (*policy)
		code = is_free(t, again ? saved.policy : policy, &free);
	if (!code && free && tier_load(t->ctx, policy, again ? saved.params.set : set,
				       again ? saved.params.nr : nr,
				       again && saved.no_observer ? TIER_NO_OBSERVER : 0, NULL))
		code = failure_ctx(t);
	if (again)
		keeper_taken_over(t, &saved, code);
	saved_free(&saved);
	return code;
}

static void on_request(void *data, const struct tier_request *request)
{
	mover__add(data, request);
}

struct service {
	struct tierctl *t;
	struct tier_requests *requests;
	struct mover *mover;
	struct keeper *keeper;
	int state;		/* last result of a refresh */
	__u64 next_ns;		/* time of the next one */
};

/* Once a second: what is in force may have changed. A failure is said once. */
static int refresh(struct service *s)
{
	int state = tier_requests__refresh(s->requests), code;
	struct mover_totals totals;
	struct tier_env env;

	code = keeper__tick(s->keeper);
	if (state != s->state) {
		if (state < 0)
			note(s->t, "warning: %s; trying again every second",
			     tier_ctx__error(s->t->ctx)->message);
		else
			note(s->t, state ? "serving requests" : "no policy in force that makes requests");
		if (state > 0 && !tier_env__probe(s->t->ctx, &env))
			mover__set_top_nodes(s->mover, env.top_nodes);
	}
	s->state = state;
	mover__totals(s->mover, &totals);
	service_notify("WATCHDOG=1\nSTATUS=%s; moved %llu of %llu requested pages",
		       state > 0 ? "serving" : state ? "failing" : "idle", totals.moved_pages,
		       totals.pages);
	return code;
}

static int serve(struct service *s, __u64 poll_ns)
{
	struct mover_totals totals;
	int code = TIER_CLASS_OK;

	do {
		if (now_ns() >= s->next_ns) {
			code = refresh(s);
			s->next_ns = now_ns() + SECOND_NS;
		}
		tier_requests__serve(s->requests, LISTEN_MS);
		mover__flush(s->mover);
		/* Nothing can come before the next refresh finds a queue. */
	} while (!code && sleep_until(s->state > 0 ? now_ns() + poll_ns : s->next_ns));

	service_notify("STOPPING=1");
	tier_requests__serve(s->requests, 0);
	mover__flush(s->mover);
	mover__totals(s->mover, &totals);
	note(s->t, "stopped; moved %llu of %llu requested pages", totals.moved_pages, totals.pages);
	return code;
}

/* What serves others beside the mover, as the configuration says. */
struct helpers {
	struct metrics_http *http;
	struct readers *readers;
};

static int start_helpers(struct tierctl *t, const struct conf *conf, struct helpers *h)
{
	const struct conf_value *group = &conf->value[CONF_READ_GROUP];
	const struct conf_value *where = &conf->value[CONF_METRICS];
	char what[sizeof(where->from) + 16];
	int code = TIER_CLASS_OK;

	/* First: it is a fork, and the other one has threads. */
	snprintf(what, sizeof(what), "read_group in %s", group->from);
	if (*group->text)
		code = readers__start(t, what, group->text, &h->readers);
	if (strncmp(where->from, "--", 2))
		snprintf(what, sizeof(what), "metrics in %s", where->from);
	else
		snprintf(what, sizeof(what), "%s", where->from);
	if (!code && *where->text)
		code = metrics_http__start(t, what, where->text, &h->http);
	return code;
}

static void stop_helpers(struct helpers *h)
{
	metrics_http__stop(h->http);
	readers__stop(h->readers);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct helpers helpers = { 0 };
	struct service s = { .t = t, .state = 2 };
	static struct conf conf;
	int code;

	t->service = true;
	code = resolve(t, args, &conf);
	if (code)
		return code;
	if (args->opt[LOAD_ONLY].given)
		return load_policy(t, &conf);
	s.mover = mover__new((conf.value[CONF_LIMIT_MBPS].number << 20) / sysconf(_SC_PAGESIZE));
	s.keeper = keeper__new(t, conf.value[CONF_REATTACH].number);
	if (!s.mover || !s.keeper)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	stop_on_signals();
	if (tier_requests__new(t->ctx, on_request, s.mover, &s.requests))
		code = failure_ctx(t);
	if (!code) {
		mover__use(s.mover, s.requests);
		code = load_policy(t, &conf);
	}
	if (!code)
		code = start_helpers(t, &conf, &helpers);
	if (!code) {
		service_notify("READY=1");
		code = serve(&s, conf.value[CONF_POLL_MS].number * 1000000);
	}
	stop_helpers(&helpers);
	tier_requests__free(s.requests);
	mover__free(s.mover);
	keeper__free(s.keeper);
	return code;
}

const struct command cmd_daemon = {
	.name = "daemon",
	.group = "Service",
	.summary = "foreground service: promotions ahead of a fault, metrics, policy at boot",
	.doc = "Moves the pages that policies request beside the ones that fault: those near a hot page "
	"(policy locality), and, where a policy's honour_nodemask is on, hot pages of tasks that run "
	"outside the nodes of their memory policy. It moves them in batches with move_pages(2), which "
	"keeps to each process's cpuset and leaves pages that several processes map alone; a node that is full gets none. "
	"'tierctl stats' shows what was requested and what became of it.\n\n"
	"Policies go on without it and then request nothing. It follows swap, unload and load, may be "
	"restarted at any time, and ends cleanly on SIGTERM; the policy stays in force. Only one can "
	"run.\n\n"
	"It keeps what was put in force: a policy that went without 'tierctl unload' (its pins were "
	"removed) is loaded again with its parameters, and so is the last one when the module is taken "
	"out and inserted anew. It takes over the watch of a policy on probation whose tierctl was "
	"killed or left it to the daemon, and goes back with the reason in its log and in 'tierctl "
	"status'. Members of read_group may have it run 'status', 'stats', 'hist', "
	"'doctor', 'get', 'list', 'metrics', 'version' and 'dump'.\n\n"
	"It tells systemd when it is ready (Type=notify). Its log goes to stderr as text, also with "
	"--json, which is for the error that ends it. The configuration is described "
	"under 'tierctl help config'.",
	.examples =
	"  tierctl daemon\n"
	"  tierctl daemon --limit-mbps 200 --metrics 9464\n",
	.opts = opts,
	.run = run,
};
