// SPDX-License-Identifier: GPL-2.0
/*
 * cowshare PROCESSES PAGES [thp]: processes that share a data segment copy-on-write.
 *
 * The segment is filled on the slow node and left alone until the NUMA scanner has marked
 * all of it: a page that more than one process maps is not marked any more, so it has to
 * become shared afterwards. Then PROCESSES - 1 children are forked and each of them and
 * the parent reads every page once: a hint fault on a shared page for each page and
 * process (with thp for each huge page and process).
 *
 * Prints "name value" lines: pages, slow_before, slow_after. Exit: 0, 1 failed, 2 usage.
 */
#include "guest_node.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define HUGE_BYTES	(2ul << 20)
#define MARK_SECONDS	120
#define MAX_PROCESSES	256

static long vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "re");
	char key[64];
	long value;

	while (f && fscanf(f, "%63s %ld", key, &value) == 2) {
		if (!strcmp(key, name)) {
			fclose(f);
			return value;
		}
	}
	if (f)
		fclose(f);
	return -1;
}

/* The scanner works on our time: use some of it, but touch nothing of the segment. */
static void burn_ms(long ms)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static char *segment(unsigned long pages, int huge)
{
	size_t bytes = pages * GUEST_PAGE;
	char *area = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return NULL;
	area = (char *)(((unsigned long)area + HUGE_BYTES - 1) & -HUGE_BYTES);
	if (madvise(area, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) ||
	    task_policy(MPOL_BIND, slow_nodes()))
		return NULL;
	memset(area, 1, bytes);
	return task_policy(MPOL_DEFAULT, 0) ? NULL : area;
}

static unsigned long read_all(const volatile char *area, unsigned long pages)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < pages; i++)
		sum += area[i * GUEST_PAGE];
	return sum;
}

/* The children begin when all are there: the pipe's other end is closed. */
static int fork_readers(int nr, const char *area, unsigned long pages)
{
	int start[2], status, failed = 0;
	char byte;

	if (pipe(start))
		return -1;
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (!pid) {
			close(start[1]);
			if (read(start[0], &byte, 1) < 0)
				_exit(1);
			_exit(read_all(area, pages) != pages);
		}
	}
	close(start[0]);
	close(start[1]);
	failed += read_all(area, pages) != pages;
	while (wait(&status) > 0)
		failed += status != 0;
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	long processes = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	long pages = argc > 2 ? strtol(argv[2], NULL, 10) : 0, before, marked = 0;
	int huge = argc > 3 && !strcmp(argv[3], "thp");
	char *area;

	if (processes < 2 || processes > MAX_PROCESSES || pages < 1) {
		fprintf(stderr, "usage: cowshare PROCESSES PAGES [thp]\n");
		return 2;
	}
	before = vmstat("numa_pte_updates");
	area = segment(pages, huge);
	if (!area) {
		fprintf(stderr, "cowshare: filling %ld pages on the slow node: %m\n", pages);
		return 1;
	}
	/* Only slow-tier pages are marked, and nobody else has any: the count is ours. */
	for (int i = 0; i < MARK_SECONDS * 10 && marked < pages; i++) {
		burn_ms(100);
		marked = vmstat("numa_pte_updates") - before;
	}
	if (marked < pages) {
		fprintf(stderr, "cowshare: only %ld pages marked in %d s\n", marked, MARK_SECONDS);
		return 1;
	}
	printf("pages %ld\nslow_before %ld\n", pages, pages_on(area, pages, slow_nodes()));
	fflush(stdout);
	if (fork_readers(processes - 1, area, pages)) {
		fprintf(stderr, "cowshare: a reader failed: %m\n");
		return 1;
	}
	printf("slow_after %ld\n", pages_on(area, pages, slow_nodes()));
	return 0;
}
