// SPDX-License-Identifier: GPL-2.0
/*
 * A real policy object as decider: its replay programs, run by this machine's
 * kernel over each tick's faults and each scan. The struct_ops map and the
 * other programs stay out, so no module and no tiers are needed; bpf(2) is
 * (root).
 */
#include "sim.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define ENTRIES 1024

struct policy {
	struct ts_decider base;
	struct bpf_object *object;
	struct bpf_program *replay, *scan_replay;
	int nodes_fd, regions_fd;
	struct tier_replay_entry *entry;	/* the replay map's memory */
	struct tier_replay_scan *scan;		/* the same for the scan op, NULL without */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	/* What the verifier says of a refused program is the one thing that helps. */
	return level == LIBBPF_WARN && getenv("TIERSIM_VERBOSE") ? vfprintf(stderr, format, args) : 0;
}

/* ---- setting variables before load ---- */

/* Where a global variable's first value lies, or NULL. */
static void *find_variable(struct bpf_object *object, const char *section, const char *name,
			   size_t *size)
{
	const struct btf *btf = bpf_object__btf(object);
	const struct btf_var_secinfo *info;
	const struct btf_type *type, *var;
	struct bpf_map *map;
	char *data = NULL;
	size_t bytes = 0;
	int id, i;

	id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	if (id < 0)
		return NULL;
	bpf_object__for_each_map(map, object) {
		const char *map_name = bpf_map__name(map);
		size_t length = strlen(map_name), tail = strlen(section);

		/* libbpf puts the object's name before those it shortens */
		if (length >= tail && !strcmp(map_name + length - tail, section))
			data = bpf_map__initial_value(map, &bytes);
	}
	type = btf__type_by_id(btf, id);
	info = btf_var_secinfos(type);
	for (i = 0; data && i < btf_vlen(type); i++, info++) {
		var = btf__type_by_id(btf, info->type);
		if (strcmp(btf__name_by_offset(btf, var->name_off), name))
			continue;
		if (info->offset + info->size > bytes)
			return NULL;
		*size = info->size;
		return data + info->offset;
	}
	return NULL;
}

static bool put(void *where, size_t size, uint64_t value)
{
	uint32_t value32 = (uint32_t)value;

	if (size == sizeof(value))
		memcpy(where, &value, size);
	else if (size == sizeof(value32) && value32 == value)
		memcpy(where, &value32, size);
	else
		return false;
	return true;
}

/* What libtier tells a policy of the machine; an absent one is of no use to it. */
static void set_machine(struct bpf_object *object, const struct ts_options *opt)
{
	const struct { const char *name; uint64_t value; } known[] = {
		{ "tier_nr_nodes", 2 },
		{ "tier_top_nodes", 1u << TS_FAST_NID },
		{ "tier_stamp_bits", (uint64_t)__builtin_ctz(opt->stamp_wrap_ms) },
		{ "tier_stamp_unit_ms", 1 },
		{ "tier_stamp_wrap_ms", opt->stamp_wrap_ms },
		{ "tier_page_shift", 12 },
		{ "tier_top_node_pages", opt->fast_pages },
	};
	size_t i, size;
	void *where;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		where = find_variable(object, ".rodata", known[i].name, &size);
		if (where)
			put(where, size, known[i].value);
	}
}

static int set_parameter(struct bpf_object *object, const char *label, const char *setting)
{
	const char *equals = strchr(setting, '=');
	char name[64], *end;
	uint64_t value;
	size_t size;
	void *where;

	if (!equals || equals == setting || (size_t)(equals - setting) >= sizeof(name)) {
		fprintf(stderr, "tiersim: %s: %s is not name=value\n", label, setting);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equals - setting), setting);
	errno = 0;
	value = strtoull(equals + 1, &end, 0);
	if (errno || end == equals + 1 || *end || equals[1] == '-') {
		fprintf(stderr, "tiersim: %s: %s is not a whole number\n", label, equals + 1);
		return -EINVAL;
	}
	where = find_variable(object, ".data.params", name, &size);
	if (!where) {
		fprintf(stderr, "tiersim: %s has no parameter %s\n", label, name);
		return -ENOENT;
	}
	if (put(where, size, value))
		return 0;
	fprintf(stderr, "tiersim: %s: %s does not fit into %s\n", label, equals + 1, name);
	return -ERANGE;
}

/* ---- opening ---- */

static int find_object(const char *name, char *path, size_t size)
{
	const char *from_env = getenv("TIERCTL_POLICY_PATH");
	char self[4096], *dirs[3] = { NULL, NULL, (char *)"build/bpf" };
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 16);
	char beside[4200];
	size_t i;

	if (strchr(name, '/') || strstr(name, ".bpf.o")) {
		snprintf(path, size, "%s", name);
		return access(path, R_OK) ? -errno : 0;
	}
	dirs[0] = (char *)from_env;
	if (length > 0) {
		self[length] = 0;
		snprintf(beside, sizeof(beside), "%s/../../bpf", dirname(self));
		dirs[1] = beside;
	}
	for (i = 0; i < 3; i++) {
		if (!dirs[i])
			continue;
		snprintf(path, size, "%s/policy_%s.bpf.o", dirs[i], name);
		if (!access(path, R_OK))
			return 0;
	}
	return -ENOENT;
}

/* Size the maps and leave out all that needs the module. */
static void prepare(struct policy *p)
{
	const struct { const char *name; uint32_t entries; } sized[] = {
		{ "tier_counts", 4 }, { "tier_hist", 2 }, { "tier_nodes", 2 },
		{ "tier_replay_faults", ENTRIES },
	};
	char replay[64] = "", scan_replay[64] = "";
	struct bpf_program *program;
	struct bpf_map *map;
	size_t i;

	bpf_object__for_each_map(map, p->object) {
		const char *name = bpf_map__name(map);

		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS) {
			snprintf(replay, sizeof(replay), "%s_replay", name);
			snprintf(scan_replay, sizeof(scan_replay), "%s_scan_replay", name);
			bpf_map__set_autocreate(map, false);
		}
		for (i = 0; i < sizeof(sized) / sizeof(sized[0]); i++)
			if (!strcmp(name, sized[i].name))
				bpf_map__set_max_entries(map, sized[i].entries);
		if (!strcmp(name, "tier_replay_faults") || !strcmp(name, "tier_replay_scans"))
			bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_MMAPABLE);
	}
	bpf_object__for_each_program(program, p->object) {
		const char *name = bpf_program__name(program);

		bpf_program__set_autoload(program, !strcmp(name, replay) || !strcmp(name, scan_replay));
		if (!strcmp(name, replay))
			p->replay = program;
		else if (!strcmp(name, scan_replay))
			p->scan_replay = program;
	}
}

static int map_fd(struct bpf_object *object, const char *name)
{
	return bpf_object__find_map_fd_by_name(object, name);
}

/* The memory of an array map; NULL after an error message. */
static void *map_memory(const struct policy *p, const char *name, size_t bytes)
{
	int fd = map_fd(p->object, name);
	void *memory;

	if (fd < 0) {
		fprintf(stderr, "tiersim: %s has no map %s\n", p->base.label, name);
		return NULL;
	}
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	fprintf(stderr, "tiersim: mapping %s of %s: %m\n", name, p->base.label);
	return NULL;
}

/* Reports its errors. */
static int load(struct policy *p)
{
	int err = bpf_object__load(p->object);

	if (err) {
		fprintf(stderr, "tiersim: loading %s into this kernel: %s%s\n", p->base.label,
			strerror(-err), err == -EPERM ? "; needs root" :
			"; TIERSIM_VERBOSE=1 shows the kernel's reasons");
		return err;
	}
	p->nodes_fd = map_fd(p->object, "tier_nodes");
	p->regions_fd = map_fd(p->object, "tier_regions");
	p->entry = map_memory(p, "tier_replay_faults", ENTRIES * sizeof(*p->entry));
	if (p->scan_replay)
		p->scan = map_memory(p, "tier_replay_scans", sizeof(*p->scan));
	return p->entry && (p->scan || !p->scan_replay) ? 0 : -EINVAL;
}

/* ---- running ---- */

static int replay(const struct policy *p, const struct bpf_program *program, uint32_t nr)
{
	struct tier_replay run = { .first = 0, .nr = nr, .repeat = 1 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &run, .ctx_size_in = sizeof(run));
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	/* the program returns its error, which run.error would tell too */
	if (!err)
		err = (int)opts.retval;
	if (err)
		fprintf(stderr, "tiersim: running %s of %s: %s\n", bpf_program__name(program),
			p->base.label, strerror(abs(err)));
	return err;
}

static int decide_policy(struct ts_decider *d, struct ts_machine *m,
			 struct tier_replay_entry *entry, const uint32_t *folio, uint32_t nr)
{
	struct policy *p = (struct policy *)d;
	uint32_t nid = TS_FAST_NID, done, part;
	struct tier_node node;
	int err;

	/* the observer's part */
	if (p->nodes_fd >= 0 && !bpf_map_lookup_elem(p->nodes_fd, &nid, &node)) {
		node.demoted_pages = m->count.demotions;
		bpf_map_update_elem(p->nodes_fd, &nid, &node, BPF_ANY);
	}

	for (done = 0; done < nr; done += part) {
		part = nr - done < ENTRIES ? nr - done : ENTRIES;
		memcpy(p->entry, entry + done, part * sizeof(*entry));
		err = replay(p, p->replay, part);
		if (err)
			return err;
		memcpy(entry + done, p->entry, part * sizeof(*entry));
	}
	return 0;
}

static int scan_policy(struct ts_decider *d, const struct tier_scan *scan, bool *skip)
{
	struct policy *p = (struct policy *)d;
	int err;

	*p->scan = (struct tier_replay_scan){ .scan = *scan };
	err = replay(p, p->scan_replay, 1);
	*skip = !err && p->scan->verdict == TIER_SCAN_SKIP;
	return err;
}

static int scanned_policy(struct ts_decider *d, const struct tier_region_key *key,
		   const struct tier_region *region)
{
	struct policy *p = (struct policy *)d;

	if (p->regions_fd < 0 || !bpf_map_update_elem(p->regions_fd, key, region, BPF_ANY))
		return 0;
	fprintf(stderr, "tiersim: recording a scan for %s: %m\n", d->label);
	return -errno;
}

static uint32_t threshold_policy(struct ts_decider *d)
{
	struct policy *p = (struct policy *)d;
	struct tier_node node = { 0 };
	uint32_t nid = TS_FAST_NID;

	if (p->nodes_fd < 0 || bpf_map_lookup_elem(p->nodes_fd, &nid, &node))
		return 0;
	return node.threshold_ms;
}

static void close_policy(struct ts_decider *d)
{
	struct policy *p = (struct policy *)d;

	if (p->entry)
		munmap(p->entry, ENTRIES * sizeof(*p->entry));
	if (p->scan)
		munmap(p->scan, sizeof(*p->scan));
	bpf_object__close(p->object);
	free(p);
}

static int configure(struct policy *p, char *words, char *const *sets,
		     const struct ts_options *opt)
{
	char *setting, *rest = NULL;
	int err = 0;

	set_machine(p->object, opt);
	for (; !err && sets && *sets; sets++)
		err = set_parameter(p->object, p->base.label, *sets);
	for (setting = words ? strtok_r(words, ",", &rest) : NULL; !err && setting;
	     setting = strtok_r(NULL, ",", &rest))
		err = set_parameter(p->object, p->base.label, setting);
	return err;
}

struct ts_decider *ts_policy_open(const char *spec, char *const *sets,
				  const struct ts_options *opt)
{
	struct policy *p = calloc(1, sizeof(*p));
	char *name = strdup(spec), *words, path[4400];

	if (!p || !name)
		goto fail;
	libbpf_set_print(quiet);
	words = strchr(name, ',');
	if (words)
		*words++ = 0;
	snprintf(p->base.label, sizeof(p->base.label), "%s", spec);
	if (find_object(name, path, sizeof(path))) {
		fprintf(stderr, "tiersim: no policy object for %s: give its path, or set TIERCTL_POLICY_PATH\n",
			name);
		goto fail;
	}
	p->object = bpf_object__open_file(path, NULL);
	if (!p->object) {
		fprintf(stderr, "tiersim: %s is not a BPF object: %m\n", path);
		goto fail;
	}
	prepare(p);
	if (!p->replay) {
		fprintf(stderr, "tiersim: %s has no policy with a replay program\n", path);
		goto fail;
	}
	if (configure(p, words, sets, opt) || load(p))
		goto fail;
	p->base.decide = decide_policy;
	p->base.scan = p->scan_replay ? scan_policy : NULL;
	p->base.scanned = scanned_policy;
	p->base.threshold_ms = threshold_policy;
	p->base.close = close_policy;
	free(name);
	return &p->base;
fail:
	free(name);
	if (p)
		close_policy(&p->base);
	return NULL;
}
