// SPDX-License-Identifier: GPL-2.0
/*
 * holdmem NODE MIB [lock]: hold that much memory of one node, bound to it by
 * MPOL_BIND; locked, it can neither be demoted nor reclaimed. Prints "ready" when
 * all of it is there, then sleeps until it is killed.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long nodes, size;
	char *memory;

	if (argc < 3) {
		fprintf(stderr, "usage: holdmem NODE MIB [lock]\n");
		return 2;
	}
	nodes = 1UL << strtoul(argv[1], NULL, 10);
	size = strtoul(argv[2], NULL, 10) << 20;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
	    syscall(SYS_mbind, memory, size, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0)) {
		fprintf(stderr, "holdmem: %s\n", strerror(errno));
		return 1;
	}
	if (argc > 3 && mlock(memory, size)) {
		fprintf(stderr, "holdmem: mlock: %s\n", strerror(errno));
		return 1;
	}
	memset(memory, 1, size);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
