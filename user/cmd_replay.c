// SPDX-License-Identifier: GPL-2.0
/* tierctl replay: a policy's decisions over made-up faults, and are they the expected ones? */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

#define MAX_REPLAY	100000

enum { REPLAY_SET, REPLAY_WRAP };

static const struct opt opts[] = {
	{ "set", 's', OPT_LIST, "NAME=VALUE", "run with this parameter value", 0, 0, NULL },
	{ "stamp-wrap", 0, OPT_DURATION, "TIME",
	  "the kernel's scan stamp wraps after this time (default: never)", 1, 0xffffffffULL, NULL },
	{ 0 },
};

static const char *const decision_names[TIER_NR_DECISIONS] = {
#define TIER_DECISION(id, verdict, sym, name, cause) [id] = name,
#include <tier/decisions.def>
#undef TIER_DECISION
};

/* A key of a fault: a number of the record, or a flag with its _KNOWN bit. */
static const struct {
	const char *key;
	size_t offset;
	unsigned int bytes;	/* 0: a flag */
	__u32 flag, known;
} keys[] = {
#define NUMBER(name) { #name, offsetof(struct tier_fault, name), \
		       sizeof(((struct tier_fault *)0)->name), 0, 0 }
	NUMBER(now_ms), NUMBER(latency_ms), NUMBER(nr_pages), NUMBER(src_nid), NUMBER(dst_nid),
	NUMBER(pid), NUMBER(tgid), NUMBER(now_ns), NUMBER(pfn), NUMBER(page_id), NUMBER(addr),
	NUMBER(mm_id), NUMBER(vm_start), NUMBER(vm_end), NUMBER(vm_flags),
#undef NUMBER
	{ "room", 0, 0, TIER_FAULT_ROOM, TIER_FAULT_ROOM_KNOWN },
	{ "shared", 0, 0, TIER_FAULT_SHARED, TIER_FAULT_SHARED_KNOWN },
	{ "allowed", 0, 0, TIER_FAULT_ALLOWED, TIER_FAULT_ALLOWED_KNOWN },
	{ "file", 0, 0, TIER_FAULT_FILE, 0 },
};

struct replay {
	struct tier_replay_entry *entry;
	const char **expect;	/* decision name, NULL: none expected */
	unsigned int nr;
};

static const char *put(struct tier_fault *fault, const char *key, struct json_object *value)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		__s64 number = json_object_get_int64(value);
		__u32 small = number;

		if (strcmp(keys[i].key, key))
			continue;
		if (!keys[i].bytes) {
			if (!json_object_is_type(value, json_type_boolean))
				return "must be true or false";
			fault->flags |= keys[i].known;
			/* the line before may have said the opposite */
			if (json_object_get_boolean(value))
				fault->flags |= keys[i].flag;
			else
				fault->flags &= ~keys[i].flag;
			return NULL;
		}
		if (!json_object_is_type(value, json_type_int) || number < 0 ||
		    (keys[i].bytes == 4 && number > 0xffffffffLL))
			return "must be a whole number that fits its field";
		memcpy((char *)fault + keys[i].offset, keys[i].bytes == 4 ? (void *)&small : (void *)&number,
		       keys[i].bytes);
		if (!strcmp(key, "addr"))
			fault->flags |= TIER_FAULT_ADDR;
		return NULL;
	}
	return "is no field of a fault";
}

static const char *decision_by_name(const char *name)
{
	for (int i = 0; i < TIER_NR_DECISIONS; i++)
		if (decision_names[i] && !strcmp(decision_names[i], name))
			return decision_names[i];
	return NULL;
}

/* One line: what it does not say is as in the line before, but for expect. */
static int take_line(struct tierctl *t, struct replay *r, const char *from, unsigned int line,
		     const char *text)
{
	struct tier_replay_entry *entry = &r->entry[r->nr];
	struct json_object *root = json_tokener_parse(text);
	const char *wrong = NULL;

	if (!json_object_is_type(root, json_type_object)) {
		json_object_put(root);
		return failure(t, TIER_CLASS_USAGE, "One JSON object a line: {\"latency_ms\":100}.",
			       "%s line %u is no JSON object", from, line);
	}
	if (r->nr)
		entry->fault = entry[-1].fault;
	json_object_object_foreach(root, key, value) {
		if (!strcmp(key, "expect")) {
			r->expect[r->nr] = decision_by_name(json_object_get_string(value) ?: "");
			wrong = r->expect[r->nr] ? NULL : "names no decision";
		} else {
			wrong = put(&entry->fault, key, value);
		}
		if (wrong) {
			int code = failure(t, TIER_CLASS_USAGE,
					   "'tierctl help replay' lists fields and decisions.",
					   "%s line %u: '%s' %s", from, line, key, wrong);

			json_object_put(root);
			return code;
		}
	}
	json_object_put(root);
	r->nr++;
	return 0;
}

static int read_faults(struct tierctl *t, struct replay *r, const char *from)
{
	FILE *file = strcmp(from, "-") ? fopen(from, "r") : stdin;
	const char *name = file == stdin ? "standard input" : from;
	unsigned int line = 0;
	char *text = NULL;
	size_t size = 0;
	int code = 0;

	if (!file)
		return failure(t, TIER_CLASS_USAGE, "", "read faults from %s: %s", from, strerror(errno));
	while (!code && getline(&text, &size, file) >= 0) {
		line++;
		if (text[strspn(text, " \t\r\n")] == '\0' || text[0] == '#')
			continue;
		if (r->nr == MAX_REPLAY)
			code = failure(t, TIER_CLASS_USAGE, "Split the file.",
				       "%s has more than %d faults", name, MAX_REPLAY);
		else
			code = take_line(t, r, name, line, text);
	}
	if (!code && ferror(file))
		code = failure(t, TIER_CLASS_FAILED, "", "read faults from %s: %s", from, strerror(errno));
	if (!code && !r->nr)
		code = failure(t, TIER_CLASS_USAGE, "One JSON object a line: {\"latency_ms\":100}.",
			       "%s holds no fault", name);
	free(text);
	if (file != stdin)
		fclose(file);
	return code;
}

static const struct out_col fault_cols[] = {
	{ "/fault", "FAULT", OUT_NO_UNIT }, { "/now_ms", "AT", 0 }, { "/latency_ms", "LATENCY", 0 },
	{ "/verdict", "VERDICT", 0 }, { "/decision", "REASON", 0 },
	{ "/expected", "EXPECTED", OUT_OPTIONAL }, { 0 },
};

static const struct out_col end_cols[] = {
	{ "/faults", "faults", 0 }, { "/unexpected", "not as expected", 0 }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_TABLE, "/replay", NULL, fault_cols, NULL, false },
	{ OUT_VIEW_LINES, "", NULL, end_cols, NULL, false },
	{ 0 },
};

static int report(struct tierctl *t, const struct replay *r)
{
	__u64 unexpected = 0;
	int code;

	out_begin_array(t->out, "replay");
	for (unsigned int i = 0; i < r->nr; i++) {
		const struct tier_replay_entry *entry = &r->entry[i];
		const char *name = entry->decision < TIER_NR_DECISIONS ?
				   decision_names[entry->decision] : NULL;

		out_begin_object(t->out, NULL);
		out_u64(t->out, "fault", i + 1);
		out_u64(t->out, "now_ms", entry->fault.now_ms);
		out_u64(t->out, "latency_ms", entry->latency_ms);
		out_str(t->out, "verdict", name ? verdict_name(tier_decision_verdict(entry->decision)) : "bad");
		out_str(t->out, "decision", name ?: "unknown");
		if (r->expect[i]) {
			out_str(t->out, "expected", r->expect[i]);
			unexpected += r->expect[i] != name;
		} else {
			unexpected += !name;
		}
		out_end(t->out);
	}
	out_end(t->out);
	out_u64(t->out, "faults", r->nr);
	out_u64(t->out, "unexpected", unexpected);
	code = show(t, views);
	return code ?: unexpected ? TIER_CLASS_FAILED : 0;
}

static int run(struct tierctl *t, const struct args *args)
{
	struct replay r = {
		.entry = calloc(MAX_REPLAY, sizeof(*r.entry)),
		.expect = calloc(MAX_REPLAY, sizeof(*r.expect)),
	};
	const struct opt_value *set = &args->opt[REPLAY_SET];
	struct settings settings = { 0 };
	int code;

	if (!r.entry || !r.expect) {
		code = failure(t, TIER_CLASS_FAILED, "", "replay: out of memory");
		goto out;
	}
	r.entry[0].fault = (struct tier_fault){ .nr_pages = 1, .src_nid = 1 };
	code = settings_parse(t, &settings, "--set", set->list, set->nr);
	if (!code)
		code = read_faults(t, &r, args->nr_words > 1 ? args->words[1] : "-");
	if (!code) {
		if (tier_replay(t->ctx, args->words[0], settings.set, settings.nr,
				args->opt[REPLAY_WRAP].number, r.entry, r.nr, NULL))
			code = failure_ctx(t);
		else
			code = report(t, &r);
	}
	settings_free(&settings);
out:
	free(r.entry);
	free(r.expect);
	return code;
}

const struct command cmd_replay = {
	.name = "replay",
	.args = "POLICY|FILE.bpf.o [FAULTS]",
	.group = "Look",
	.summary = "a policy's decisions over made-up faults, on any machine",
	.doc = "Runs the policy's replay program, the same bytecode that decides real faults, over faults "
	"read from FAULTS (default: standard input), and prints what it decides. Needs root, but neither "
	"the module nor memory tiers; nothing in force is touched.\n\n"
	"FAULTS has one JSON object a line. Numbers: now_ms, latency_ms, nr_pages, src_nid, dst_nid, pid, "
	"tgid, now_ns, pfn, page_id, addr, mm_id, vm_start, vm_end, vm_flags. True or false: room, shared, "
	"allowed, file. What a line leaves out is as in the line before; the first starts from one page, from node 1 "
	"to node 0, all else 0. 'expect' names the decision that should come out: if another one does, the "
	"command fails with 1. Empty lines and lines that begin with # are passed over.\n\n"
	"Decisions:"
#define TIER_DECISION(id, verdict, sym, name, cause) " " name
#include <tier/decisions.def>
#undef TIER_DECISION
	".",
	.examples = "  tierctl replay fixed faults.json --set hot_threshold_ms=300\n"
	"  echo '{\"latency_ms\":100,\"expect\":\"hot\"}' | tierctl replay ./mine.bpf.o\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 2,
	.words = WORDS_POLICY,
	.run = run,
};
