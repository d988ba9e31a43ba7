// SPDX-License-Identifier: GPL-2.0
/* See replaybench.h. */
#include "replaybench.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define HOT_MS		40
#define COLD_MS		8000
#define UP		(1U << 20)	/* flags of pages that are up */
#define SCAN_PAGES_PER_MS 64		/* the kernel's most: 256 MiB a second and process */
#define DRAWS		4096
#define GIB		(1ULL << 30)
#define VM_FLAGS	0x23		/* readable, writable, private */

unsigned int rb_number(struct argp_state *state, const char *arg, unsigned int min,
		       unsigned int max)
{
	__u64 value;

	if (tier_parse_u64(arg, &value) || value < min || value > max)
		argp_error(state, "%s is not a number from %u to %u", arg, min, max);
	return value;
}

static float wait_of[DRAWS];		/* exponentially distributed, mean 1 */

static uint64_t draw(struct rb_stream *s)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed * 0x2545f4914f6cdd1dULL >> 16;
}

/* ---- opening ---- */

static int stream_start(struct rb_stream *s)
{
	for (unsigned int i = 0; i < DRAWS; i++)
		wait_of[i] = -log((i + 0.5) / DRAWS);
	s->seed = 88172645463325252ULL;
	s->now_ms = 1000000;
	s->up = calloc(UP, sizeof(*s->up));
	s->order = calloc(s->room_pages + 1, sizeof(*s->order));
	return s->up && s->order ? 0 : -ENOMEM;
}

static void machine(struct tier_env *env, const struct rb_stream *s, uint64_t memory_bytes,
		    uint32_t stamp_wrap_ms)
{
	memset(env, 0, sizeof(*env));
	env->nr_nodes = s->nodes;
	env->nodes = env->memory_nodes = s->nodes == 64 ? ~0ULL : (1ULL << s->nodes) - 1;
	env->top_nodes = env->cpu_nodes = (1ULL << s->nodes / 2) - 1;
	env->memory_bytes = memory_bytes;
	env->stamp_bits = 21;
	env->stamp_unit_ms = 1;
	env->stamp_wrap_ms = stamp_wrap_ms;
}

/* "name,parameter=value,..." */
static int prepare(struct tier_ctx *ctx, struct rb_policy *p, char *words)
{
	struct tier_setting settings[16];
	unsigned int nr = 0;
	char *word, *rest = NULL;
	int err;

	for (word = words ? strtok_r(words, ",", &rest) : NULL; word && nr < ARRAY_SIZE(settings);
	     word = strtok_r(NULL, ",", &rest)) {
		settings[nr].name = strsep(&word, "=");
		settings[nr++].value = word ? word : "";
	}
	err = tier_object_prepare(ctx, &p->object, &p->env, settings, nr, false);
	if (err)
		return err;
	/* libtier took this machine's node for it */
	return tier_set_rodata(p->object.obj, "tier_top_node_pages",
			       p->env.memory_bytes / 5 / 4096 / (p->env.nr_nodes / 2));
}

static int load(struct tier_ctx *ctx, struct rb_policy *p, bool bare)
{
	struct bpf_map *map, *faults = bpf_object__find_map_by_name(p->object.obj,
								   "tier_replay_faults");
	struct bpf_program *prog;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%s_replay", bare ? "bare" : p->object.info->name);
	p->replay = bpf_object__find_program_by_name(p->object.obj, name);
	if (!p->replay || !faults)
		return tier_fail(ctx, TIER_CLASS_USAGE, -ENOENT,
				 "Build it with TIER_POLICY() of tier/policy.bpf.h.",
				 "bench %s: it has no replay program", p->object.path);
	bpf_object__for_each_program(prog, p->object.obj)
		bpf_program__set_autoload(prog, prog == p->replay);
	bpf_object__for_each_map(map, p->object.obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_autocreate(map, false);
	err = bpf_map__set_max_entries(faults, RB_FAULTS) ?:
	      bpf_map__set_map_flags(faults, BPF_F_MMAPABLE);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "make room for %u faults: %s",
				 RB_FAULTS, strerror(-err));
	err = tier_object_load(ctx, &p->object);
	if (err)
		return err;
	p->entry = mmap(NULL, RB_FAULTS * sizeof(*p->entry), PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(faults), 0);
	if (p->entry == MAP_FAILED) {
		err = -errno;
		p->entry = NULL;
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "map the faults of %s: %s",
				 p->object.path, strerror(-err));
	}
	return 0;
}

static bool is_bare(const char *spec)
{
	return !strcmp(spec, "empty") || !strcmp(spec, "lookup");
}

struct rb_policy *rb_open(struct tier_ctx *ctx, const char *spec, const struct rb_stream *stream,
			  uint64_t memory_bytes, uint32_t stamp_wrap_ms)
{
	struct rb_policy *p = calloc(1, sizeof(*p));
	char words[96], path[PATH_MAX + 32], *settings = words, *name;
	bool bare = is_bare(spec);
	int err = -ENOMEM;

	tier_clear_error(ctx);
	if (!p)
		goto out;
	tier_copy(p->label, sizeof(p->label), spec);
	tier_copy(words, sizeof(words), spec);
	name = strsep(&settings, ",");
	p->stream = *stream;
	err = stream_start(&p->stream);
	if (err)
		goto out;
	machine(&p->env, stream, memory_bytes, stamp_wrap_ms);
	snprintf(path, sizeof(path), "%s/tests/bench/%s.bpf.o", ctx->base_dir, name);
	tier_libbpf_begin(ctx);
	err = tier_object_open(ctx, bare ? path : name, &p->object);
	tier_libbpf_end(ctx);
	if (!err)
		err = prepare(ctx, p, settings);
	if (!err)
		err = load(ctx, p, bare);
out:
	if (!err)
		return p;
	fprintf(stderr, "%s: %s\n", spec, tier_ctx__error(ctx)->message[0] ?
		tier_ctx__error(ctx)->message : strerror(-err));
	if (tier_ctx__error(ctx)->hint[0])
		fprintf(stderr, "%s\n", tier_ctx__error(ctx)->hint);
	rb_close(p);
	return NULL;
}

void rb_close(struct rb_policy *p)
{
	if (!p)
		return;
	if (p->entry)
		munmap(p->entry, RB_FAULTS * sizeof(*p->entry));
	tier_object_close(&p->object);
	free(p->stream.up);
	free(p->stream.order);
	free(p);
}

/* ---- faults ---- */

void rb_locate(const struct rb_stream *s, uint64_t page, struct tier_fault *f)
{
	f->flags |= TIER_FAULT_ADDR;
	f->mm_id = 0xffff888000000000ULL + page % s->processes * 1024;
	f->addr = 0x7f0000000000ULL + page / s->processes * 4096;
	f->vm_start = f->addr & ~(GIB - 1);
	f->vm_end = f->vm_start + GIB;
	f->vm_flags = VM_FLAGS;
}

/*
 * Only what was scanned faults, and the scanner is slow: at a time all of a process's
 * faults are in a window that moves through its memory, a sixteenth of it hot.
 */
static uint64_t in_window(struct rb_stream *s, bool hot)
{
	uint64_t process = draw(s) % s->processes, each = s->pages / s->processes + 1;
	uint64_t window = s->window_pages < each ? s->window_pages : each;
	uint64_t at = draw(s) % (hot ? window / 16 + 1 : window);

	at = (at + (uint64_t)s->now_ms * SCAN_PAGES_PER_MS / window * window) % each;
	return (at * s->processes + process) % s->pages;
}

static void fill(struct rb_policy *p, struct tier_fault *f, bool *hot)
{
	struct rb_stream *s = &p->stream;
	uint64_t page, hot_pages = s->pages / 16 + 1;
	uint32_t needs = p->object.info->flags, tries = 0;

	do {
		*hot = draw(s) % 100 < s->hot_percent;
		page = s->window_pages ? in_window(s, *hot) :
		       *hot ? draw(s) % hot_pages : draw(s) % s->pages;
	} while (s->room_pages && s->up[page % UP] && ++tries < 16);
	if (++s->tick >= s->faults_per_ms) {
		s->tick = 0;
		s->now_ms++;
	}
	memset(f, 0, sizeof(*f));
	f->now_ms = s->now_ms;
	f->latency_ms = wait_of[draw(s) % DRAWS] * (*hot ? HOT_MS : COLD_MS);
	f->nr_pages = 1;
	/* a CPU sees the faults of its own node only: each call is another CPU */
	f->dst_nid = s->call % (s->nodes / 2);
	f->src_nid = s->nodes / 2 + page % (s->nodes - s->nodes / 2);
	f->pid = f->tgid = 1000 + page % s->processes;
	f->pfn = (1ULL << 24) + page;
	if (needs & TIER_NEED_ADDR)
		rb_locate(s, page, f);
	if (needs & TIER_NEED_ROOM)
		f->flags |= TIER_FAULT_ROOM_KNOWN;
	if (needs & TIER_NEED_SHARED)
		f->flags |= TIER_FAULT_SHARED_KNOWN;
	if (needs & TIER_NEED_ALLOWED)
		f->flags |= TIER_FAULT_ALLOWED_KNOWN | TIER_FAULT_ALLOWED;
	if (needs & TIER_NEED_NS)
		f->now_ns = f->now_ms * 1000000ULL;
}

static void promote(struct rb_stream *s, uint64_t page)
{
	uint32_t at = page % UP;

	if (s->up[at] || !s->room_pages)
		return;
	if (s->nr_up == s->room_pages) {	/* the oldest comes down */
		s->up[s->order[s->oldest]] = 0;
		s->oldest = (s->oldest + 1) % s->room_pages;
		s->nr_up--;
	}
	s->order[(s->oldest + s->nr_up++) % s->room_pages] = at;
	s->up[at] = 1;
}

static long lost_cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

int64_t rb_replay(struct rb_policy *p, unsigned int nr)
{
	struct tier_replay run = { .nr = nr, .repeat = 1 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &run, .ctx_size_in = sizeof(run));
	int err = bpf_prog_test_run_opts(bpf_program__fd(p->replay), &opts);

	if (!err)
		err = (int)opts.retval;
	if (!err)
		return run.elapsed_ns;
	fprintf(stderr, "run %s: %s\n", p->label, strerror(abs(err)));
	return -abs(err);
}

static int64_t call(struct rb_policy *p, bool *disturbed)
{
	int64_t ns;
	long before;
	bool hot;

	for (uint32_t i = 0; i < RB_FAULTS; i++) {
		fill(p, &p->entry[i].fault, &hot);
		p->entry[i].decision = ~0U;
	}
	p->stream.call++;
	before = lost_cpu();
	ns = rb_replay(p, RB_FAULTS);
	*disturbed = lost_cpu() != before;
	if (ns < 0)
		return ns;
	for (uint32_t i = 0; i < RB_FAULTS; i++) {
		if (tier_decision_verdict(p->entry[i].decision) != TIER_VERDICT_PROMOTE)
			continue;
		p->promoted++;
		promote(&p->stream, p->entry[i].fault.pfn - (1ULL << 24));
	}
	p->faults += RB_FAULTS;
	return ns;
}

double rb_sample(struct rb_policy *p, unsigned int calls)
{
	unsigned int done = 0, tries = 0;
	int64_t sum = 0, ns;
	bool disturbed;

	while (done < calls) {
		ns = call(p, &disturbed);
		if (ns < 0)
			return ns;
		/* on a host that is never left alone, better disturbed than never */
		if (disturbed && ++tries < 8 * calls)
			continue;
		sum += ns;
		done++;
	}
	return (double)sum / calls / RB_FAULTS;
}

/* ---- what the maps take ---- */

static uint64_t locked_bytes(int fd)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

uint64_t rb_map_bytes(const struct bpf_object *obj, const struct bpf_object *but,
		      uint64_t *per_cpu_bytes)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, obj) {
		const char *name = bpf_map__name(map);

		if (bpf_map__fd(map) < 0 || !strncmp(name, "tier_replay_", 12) ||
		    (but && bpf_object__find_map_by_name(but, name)))
			continue;
		sum += locked_bytes(bpf_map__fd(map));
		if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY)
			*per_cpu_bytes += (uint64_t)bpf_map__max_entries(map) *
					  ((bpf_map__value_size(map) + 7) & ~7U);
	}
	return sum;
}

/* ---- the machine that measures ---- */

bool rb_usable(struct tier_ctx *ctx)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "probe", 4, 8, 1, &opts);
	long jit = 0;

	if (fd < 0) {
		fprintf(stderr, "create a BPF map: %s\nRun it as root.\n", strerror(-fd));
		return false;
	}
	close(fd);
	if (tier_read_long("/proc/sys/net/core/bpf_jit_enable", &jit) || jit != 1) {
		fprintf(stderr, "measure compiled programs: net.core.bpf_jit_enable is %ld\n"
			"Set it to 1: what is interpreted says nothing of what runs.\n", jit);
		return false;
	}
	return true;
}

void rb_settle(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct rb_spread rb_spread(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return (struct rb_spread){
		.min = values[0], .max = values[nr - 1],
		.median = nr & 1 ? values[nr / 2] : (values[nr / 2 - 1] + values[nr / 2]) / 2,
	};
}
