// SPDX-License-Identifier: GPL-2.0
/* tierctl doctor: why promotion silently does not happen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

enum { FIX, WINDOW, FULL };

static const struct opt opts[] = {
	[FIX] = { "fix", 0, OPT_FLAG, NULL, "run the remedies that are safe, after showing them",
		0, 0, NULL },
	[WINDOW] = { "window", 'w', OPT_DURATION, "TIME",
		"watch counters for so long (default 1 s)", 0, 600000, NULL },
	[FULL] = { "full", 'f', OPT_FLAG, NULL,
		"look at the memory policies of all processes, however long it takes", 0, 0, NULL },
	{ 0 },
};

static const struct out_col cols[] = {
	{ "/title", "", 0 }, { "/evidence", "seen", 0 }, { "/consequence", "means", 0 },
	{ "/remedy", "do", 0 }, { "/fix", "fix", OUT_OPTIONAL }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_ITEMS, "/findings", NULL, cols, "nothing found", false },
	{ OUT_VIEW_ITEMS, "/notes", "Notes", cols, NULL, false },
	{ 0 },
};

bool doctor_loaded(const struct doctor *d)
{
	return d->status && (d->status->state == TIER_STATE_ACTIVE ||
			     d->status->state == TIER_STATE_FOREIGN);
}

struct finding *doctor_add(struct doctor *d, const char *id, enum severity severity)
{
	struct finding *f = &d->found[d->nr < MAX_FINDINGS ? d->nr++ : MAX_FINDINGS - 1];

	*f = (struct finding){ .id = id, .severity = severity };
	return f;
}

static const char *severity_name(enum severity s)
{
	static const char *const names[] = {
		[SEV_NOTE] = "note", [SEV_WARNING] = "warning", [SEV_PROBLEM] = "problem",
		[SEV_PERMISSION] = "permission", [SEV_EJECTED] = "ejected",
		[SEV_UNSUPPORTED] = "unsupported",
	};

	return names[s];
}

static int severity_code(enum severity s)
{
	static const int codes[] = {
		[SEV_NOTE] = TIER_CLASS_OK, [SEV_WARNING] = TIER_CLASS_FAILED,
		[SEV_PROBLEM] = TIER_CLASS_FAILED, [SEV_PERMISSION] = TIER_CLASS_PERMISSION,
		[SEV_EJECTED] = TIER_CLASS_EJECTED, [SEV_UNSUPPORTED] = TIER_CLASS_UNSUPPORTED,
	};

	return codes[s];
}

static bool fixable(const struct finding *f)
{
	return *f->fix_path || f->fix_clean;
}

/* Without the right to look, say so instead of passing silence for health. */
static void note_blind(struct doctor *d)
{
	struct finding *f;

	if (d->env.root)
		return;
	f = doctor_add(d, "not_root", SEV_PERMISSION);
	SAY(f->finding, "not run as root: policy, counters and processes were not looked at");
	SAY(f->evidence, "effective user id is not 0");
	SAY(f->consequence, "what is wrong there stays unseen");
	SAY(f->remedy, "sudo tierctl doctor");
}

static void take_window(struct doctor *d, __u64 window_ms)
{
	__u64 start = now_ns();

	d->vm_candidate[0] = sys_vmstat("pgpromote_candidate");
	d->vm_success[0] = sys_vmstat("pgpromote_success");
	if (doctor_loaded(d) && tier_stats__read(d->t->ctx, &d->earlier))
		d->earlier = NULL;
	sleep_until(start + window_ms * 1000000);
	if (d->earlier && tier_stats__read(d->t->ctx, &d->stats))
		d->stats = NULL;
	d->vm_candidate[1] = sys_vmstat("pgpromote_candidate");
	d->vm_success[1] = sys_vmstat("pgpromote_success");
	d->window_s = (now_ns() - start) / 1e9;
}

static int write_knob(const char *path, const char *value)
{
	FILE *f = fopen(path, "we");
	int err = 0;

	if (!f)
		return -errno;
	if (fputs(value, f) < 0)
		err = -errno;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}

/* Said first, as JSON too: the document comes when all is done. */
static void fix(struct doctor *d)
{
	for (unsigned int i = 0; i < d->nr; i++) {
		struct finding *f = &d->found[i];
		int err;

		if (!fixable(f))
			continue;
		if (f->fix_clean) {
			fprintf(stderr, "doctor: tierctl clean\n");
			err = tier_clean(d->t->ctx, 0, NULL);
		} else {
			fprintf(stderr, "doctor: write %s to %s\n", f->fix_value, f->fix_path);
			err = write_knob(f->fix_path, f->fix_value);
		}
		f->fixed = !err;
		if (err)
			SAY(f->fix_error, "failed: %s", f->fix_clean ?
			    tier_ctx__error(d->t->ctx)->message : strerror(-err));
	}
}

static void emit_finding(struct out *out, const struct finding *f)
{
	char title[256];

	SAY(title, "%s: %s", severity_name(f->severity), f->finding);
	out_begin_object(out, NULL);
	out_str(out, "id", f->id);
	out_str(out, "severity", severity_name(f->severity));
	out_str(out, "title", title);
	out_str(out, "finding", f->finding);
	out_str(out, "evidence", f->evidence);
	out_str(out, "consequence", f->consequence);
	out_str(out, "remedy", f->remedy);
	out_bool(out, "fixable", fixable(f));
	out_str(out, "fix", f->fixed ? "done" : *f->fix_error ? f->fix_error : NULL);
	out_end(out);
}

static int report(struct doctor *d)
{
	struct out *out = d->t->out;
	enum severity worst = SEV_NOTE;
	int code;

	out_begin_array(out, "findings");
	for (unsigned int i = 0; i < d->nr; i++) {
		if (d->found[i].severity == SEV_NOTE)
			continue;
		emit_finding(out, &d->found[i]);
		if (!d->found[i].fixed && d->found[i].severity > worst)
			worst = d->found[i].severity;
	}
	out_end(out);
	/* Notes are no findings: in text only for those who ask for more. */
	if (d->t->json || d->t->verbose) {
		out_begin_array(out, "notes");
		for (unsigned int i = 0; i < d->nr; i++)
			if (d->found[i].severity == SEV_NOTE)
				emit_finding(out, &d->found[i]);
		out_end(out);
	}
	out_str(out, "worst", severity_name(worst));
	out_u64(out, "checks", d->checks);
	out_double(out, "window_s", d->window_s);
	code = show(d->t, views);
	return code ? code : severity_code(worst);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct doctor *d = calloc(1, sizeof(*d));
	int code;

	if (!d)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	d->t = t;
	d->full = args->opt[FULL].given;
	if (tier_env__probe(t->ctx, &d->env)) {
		free(d);
		return failure_ctx(t);
	}
	if (d->env.root && tier_status__read(t->ctx, &d->status))
		d->status = NULL;
	take_window(d, args->opt[WINDOW].given ? args->opt[WINDOW].number : 1000);
	sys_nodes(d->nodes);
	note_blind(d);
	doctor_check_kernel(d);
	doctor_check_tiers(d);
	doctor_check_memory(d);
	doctor_check_policy(d);
	doctor_check_success(d);
	if (d->env.root)
		doctor_check_tasks(d);
	if (args->opt[FIX].given)
		fix(d);
	code = report(d);
	tier_stats__free(d->stats);
	tier_stats__free(d->earlier);
	tier_status__free(d->status);
	free(d);
	return code;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.group = "Look",
	.summary = "find out why promotion does not happen",
	.doc = "Checks everything that makes promotion silently not happen: kernel, module, tiers, "
	"modes, room on the fast nodes, limits and thresholds that cannot work, promotions that do "
	"not succeed, processes that may not use fast memory, leftovers. Each finding comes with its "
	"evidence, its consequence and what mends it. --fix runs the remedies that only switch a "
	"kernel knob or remove leftovers.\n\n"
	"Exit code 0: nothing found; 1: warnings or problems; 3: this machine cannot do it as it "
	"is booted; 4: not everything could be looked at; 5: the policy was ejected. Findings that "
	"--fix mended do not count. With -v notes are shown, too.",
	.examples = "  tierctl doctor\n  tierctl doctor --window 10s --json\n  tierctl doctor --fix\n",
	.opts = opts,
	.readers = "window",
	.run = run,
};
