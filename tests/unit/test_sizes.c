// SPDX-License-Identifier: GPL-2.0
/*
 * Maps are sized for the machine, of whose memory four fifths are slow: at most a thousandth
 * of the slow memory, from 1 GiB on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "libtier/internal.h"

#define GIB	(1ULL << 30)

static struct tier_ctx *ctx;

/* The object as it would be loaded on such a machine; no kernel is asked. */
static void prepare(const char *policy, __u64 memory_bytes, struct tier_object *object)
{
	const char *dir = getenv("TIER_BPF_DIR");
	struct tier_env env = { .nr_nodes = 2, .nodes = 3, .memory_nodes = 3, .top_nodes = 1,
				.memory_bytes = memory_bytes, .stamp_bits = -1 };
	char path[512];

	snprintf(path, sizeof(path), "%s/policy_%s.bpf.o", dir ? dir : "build/bpf", policy);
	assert_int_equal(tier_object_open(ctx, path, object), 0);
	assert_int_equal(tier_object_prepare(ctx, object, &env, NULL, 0, false), 0);
}

static __u32 entries(const struct tier_object *object, const char *map)
{
	const struct bpf_map *found = bpf_object__find_map_by_name(object->obj, map);

	assert_non_null(found);
	return bpf_map__max_entries(found);
}

static __u32 mask(const struct tier_object *object, const char *name)
{
	struct bpf_map *rodata = bpf_object__find_map_by_name(object->obj, ".rodata");
	unsigned int bytes;
	size_t size;
	char *data = bpf_map__initial_value(rodata, &size);
	int at = tier_btf_var(bpf_object__btf(object->obj), ".rodata", name, &bytes);
	__u32 value;

	assert_true(at >= 0 && bytes == sizeof(value) && at + bytes <= size);
	memcpy(&value, data + at, sizeof(value));
	return value;
}

/* What the kernel will take, about: a hash keeps its keys, and 64 bytes with each. */
static __u64 bytes_of(const struct tier_object *object)
{
	struct bpf_map *map;
	__u64 sum = 0;

	bpf_object__for_each_map(map, object->obj) {
		__u64 each = (bpf_map__value_size(map) + 7) & ~7U;

		if (!strncmp(bpf_map__name(map), "tier_replay_", 12) ||
		    bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			continue;
		if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)
			each = 1;
		if (bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH)
			each += bpf_map__key_size(map) + 64;
		sum += each * bpf_map__max_entries(map);
	}
	return sum;
}

static const struct { const char *policy, *table, *mask; } tables[] = {
	{ "twotouch", "twotouch_marks", "twotouch_marks_mask" },
	{ "locality", "locality_windows", "locality_windows_mask" },
	{ "rank", "rank_marks", "rank_marks_mask" },
	{ "fixed", "tier_brake_marks", "tier_brake_marks_mask" },
	{ "lazyscan", "lazyscan_vmas", NULL },
};

static void tables_follow_the_memory(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		__u64 memory[] = { 100ULL << 20, 5 * GIB / 4, 5 * GIB, 20 * GIB, 20480 * GIB };
		__u32 before = 0;

		for (size_t k = 0; k < ARRAY_SIZE(memory); k++) {
			struct tier_object object;
			__u32 nr;

			prepare(tables[i].policy, memory[k], &object);
			nr = entries(&object, tables[i].table);
			assert_true(nr && !(nr & (nr - 1)));
			assert_true(nr >= before);
			if (tables[i].mask)
				assert_int_equal(mask(&object, tables[i].mask), nr - 1);
			if (k)
				assert_true(bytes_of(&object) <= memory[k] / 5 * 4 / 1000);
			before = nr;
			tier_object_close(&object);
		}
	}
}

/* Small and large differ: or the test above would hold for a size that never changes. */
static void small_machines_get_less(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		struct tier_object small, large;

		if (!strcmp(tables[i].policy, "fixed"))
			continue;	/* its one table fits any machine */
		prepare(tables[i].policy, 5 * GIB / 4, &small);
		prepare(tables[i].policy, 1024 * GIB, &large);
		assert_true(entries(&small, tables[i].table) < entries(&large, tables[i].table));
		tier_object_close(&small);
		tier_object_close(&large);
	}
}

static void state_per_node(void **state)
{
	struct tier_object object;

	prepare("rank", 16 * GIB, &object);
	assert_int_equal(entries(&object, "rank_nodes"), 2);
	assert_int_equal(entries(&object, "tier_nodes"), 2);
	assert_int_equal(entries(&object, "tier_counts"), 4);
	assert_int_equal(entries(&object, "tier_regions"), 1024);
	tier_object_close(&object);
	prepare("rank", 20480 * GIB, &object);
	assert_int_equal(entries(&object, "tier_regions"), 1 << 20);
	tier_object_close(&object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_follow_the_memory),
		cmocka_unit_test(small_machines_get_less),
		cmocka_unit_test(state_per_node),
	};
	struct tier_ctx_opts opts = { .allow_unsafe_files = true };
	int failed;

	ctx = tier_ctx__new(&opts);
	if (!ctx)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tier_ctx__free(ctx);
	return failed;
}
