// SPDX-License-Identifier: GPL-2.0
/*
 * memeater NODES MIB [lock] [READY-FILE]: hold that much memory of those nodes until killed.
 *
 * With "lock" reclaim cannot move it away. READY-FILE appears once all is held. It takes
 * the memory in small steps, so that reclaim has the time to demote what others have there.
 */
#include "guest_node.h"

#include <string.h>
#include <sys/mman.h>

#define STEP_BYTES	(4ul << 20)

static int refuse_to_survive(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "we");

	if (!f)
		return -1;
	fputs("1000\n", f);
	return fclose(f);
}

int main(int argc, char **argv)
{
	unsigned long nodes = argc > 2 ? node_list(argv[1]) : 0;
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) << 20 : 0;
	int lock = argc > 3 && !strcmp(argv[3], "lock");
	const char *ready = argc > 3 + lock ? argv[3 + lock] : NULL;
	char *area;

	if (!nodes || !bytes) {
		fprintf(stderr, "usage: memeater NODES MIB [lock] [READY-FILE]\n");
		return 2;
	}
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || refuse_to_survive() || madvise(area, bytes, MADV_NOHUGEPAGE) ||
	    syscall(SYS_mbind, area, bytes, MPOL_BIND, &nodes, GUEST_MAX_NODES + 1, 0)) {
		fprintf(stderr, "memeater: mapping %zu bytes on nodes %s: %m\n", bytes, argv[1]);
		return 1;
	}
	for (size_t at = 0; at < bytes; at += STEP_BYTES) {
		size_t step = bytes - at < STEP_BYTES ? bytes - at : STEP_BYTES;

		memset(area + at, 1, step);
		if (lock && mlock(area + at, step)) {
			fprintf(stderr, "memeater: locking memory: %m\n");
			return 1;
		}
		usleep(20000);
	}
	if (ready) {
		FILE *f = fopen(ready, "we");

		if (!f || fclose(f)) {
			fprintf(stderr, "memeater: writing %s: %m\n", ready);
			return 1;
		}
	}
	for (;;)
		pause();
}
