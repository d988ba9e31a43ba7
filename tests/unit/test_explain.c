// SPDX-License-Identifier: GPL-2.0
/* What explain reads of a process, from this very process: sharing, locks, cpuset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explain.h"

#define BYTES	(1UL << 20)

/* A mapping of its own: the pages around it have other rights. */
static char *map(int flags)
{
	char *at = mmap(NULL, BYTES + 2 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	at = mmap(at + 65536, BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_true(at != MAP_FAILED);
	memset(at, 1, BYTES);
	return at;
}

static const struct vma *find(const struct maps *maps, const char *at)
{
	for (unsigned int i = 0; i < maps->nr; i++)
		if ((__u64)(uintptr_t)at >= maps->vma[i].start &&
		    (__u64)(uintptr_t)at < maps->vma[i].end)
			return &maps->vma[i];
	fail_msg("no mapping at %p", (void *)at);
	return NULL;
}

static void sharing_and_locks_are_seen(void **state)
{
	char *own = map(MAP_PRIVATE), *shared = map(MAP_SHARED), *locked;
	const struct vma *v;
	struct maps maps;
	pid_t child;

	if (access("/proc/self/numa_maps", R_OK)) {
		skip();
		return;
	}
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		/* fork() leaves shared memory to be mapped when it is touched. */
		for (size_t i = 0; i < BYTES; i += 4096)
			*(volatile char *)(shared + i);
		pause();
		_exit(0);
	}
	locked = map(MAP_PRIVATE);
	assert_int_equal(mlock(locked, BYTES), 0);
	/* The child has touched the shared pages when they have two users. */
	for (int i = 0; i < 500; i++) {
		assert_int_equal(maps_read(getpid(), 0, &maps), 0);
		if (find(&maps, shared)->mapmax > 1)
			break;
		maps_free(&maps);
		usleep(10000);
	}
	v = find(&maps, own);
	assert_true(vma_shares_cow(v));
	assert_false(v->shared);
	assert_false(v->locked);
	assert_int_equal(v->slow_bytes, BYTES);
	v = find(&maps, shared);
	assert_true(v->shared);
	assert_int_equal(v->mapmax, 2);
	assert_false(vma_shares_cow(v));
	v = find(&maps, locked);
	assert_true(v->locked);
	assert_false(vma_shares_cow(v));
	assert_int_equal(v->obstacle, OBSTACLE_NONE);
	maps_free(&maps);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void cpuset_is_read(void **state)
{
	char list[128] = "";
	__u64 allowed = sys_mems_allowed(getpid(), list, sizeof(list));

	assert_true(allowed != 0);
	if (*list)
		assert_int_equal(sys_parse_list(list), allowed);
	/* a process that is not there is not kept from anything */
	assert_true(sys_mems_allowed(0x7fffffff, NULL, 0) == ~0ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sharing_and_locks_are_seen),
		cmocka_unit_test(cpuset_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
