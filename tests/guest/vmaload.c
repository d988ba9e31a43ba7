// SPDX-License-Identifier: GPL-2.0
/*
 * vmaload VMAS PAGES BURST_MS PASSES [TURN_PASSES]: one hot VMA, and others that are used
 * now and then.
 *
 * All VMAs have PAGES pages on the slow node. The hot one is read 32 times every 2 ms.
 * Each of the others is read once in BURST_MS, in one go, and all at different moments.
 * After so many PASSES of the scanner over this process the last of them turns hot too,
 * until nine tenths of it are on the fast node, or for TURN_PASSES. One thread, which uses
 * all of its CPU, for the scanner counts CPU time.
 *
 * Prints a line five times a second: pages on the fast node of the hot VMA, of the last one
 * and of all others, passes and milliseconds. At the turn "hit_permille N": so many of 1000
 * reads in the last third of the passes found their page on the fast node. Then
 * "found_passes N": from the turn until it was found, -1 if it was not. Exit: 0, 1 failed,
 * 2 usage.
 */
#include "guest_node.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_VMAS	64
#define HOT_MS		2
#define HOT_READS	32	/* so that hits tell of the hot one: others go up by luck */
#define REPORT_MS	200
#define PATIENCE_MS	150000	/* a scanner so slow tells nothing */

struct vma {
	char *area;
	long next_ms;
	unsigned long reads;	/* since the last report */
	unsigned long long all_reads, fast_reads;
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Areas with a hole before and after: neighbours would become one VMA. */
static char *slow_area(unsigned long pages)
{
	size_t bytes = pages * GUEST_PAGE;
	char *area = mmap(NULL, bytes + 2 * GUEST_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return NULL;
	area += GUEST_PAGE;
	if (mprotect(area, bytes, PROT_READ | PROT_WRITE) || madvise(area, bytes, MADV_NOHUGEPAGE) ||
	    task_policy(MPOL_BIND, slow_nodes()))
		return NULL;
	memset(area, 1, bytes);
	return task_policy(MPOL_DEFAULT, 0) ? NULL : area;
}

static unsigned long read_all(struct vma *vma, unsigned long pages)
{
	const volatile char *area = vma->area;
	unsigned long sum = 0;

	for (unsigned long i = 0; i < pages; i++)
		sum += area[i * GUEST_PAGE];
	vma->reads += pages;
	return sum;
}

/* Passes of the scanner over this process; -1 if the kernel does not tell. */
static long scan_passes(void)
{
	FILE *f = fopen("/proc/self/sched", "re");
	char line[128];
	long passes = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "mm->numa_scan_seq : %ld", &passes) == 1)
			break;
	if (f)
		fclose(f);
	return passes;
}

/* Print the line; pages of the last VMA that are fast, or -1. */
static long report(struct vma *vma, int nr, unsigned long pages, bool settled, long passes,
		   long ms)
{
	unsigned long long others = 0;
	long hot = 0, fast = 0;

	for (int i = 0; i < nr; i++) {
		long slow = pages_on(vma[i].area, pages, slow_nodes());

		if (slow < 0)
			return -1;
		fast = pages - slow;
		if (settled) {
			vma[i].all_reads += vma[i].reads;
			vma[i].fast_reads += (double)vma[i].reads * fast / pages;
		}
		vma[i].reads = 0;
		if (!i)
			hot = fast;
		else if (i < nr - 1)
			others += fast;
	}
	printf("%ld %ld %llu %ld %ld\n", hot, fast, others, passes, ms);
	fflush(stdout);
	return fast;
}

static void print_hits(const struct vma *vma, int nr)
{
	unsigned long long all = 0, fast = 0;

	for (int i = 0; i < nr; i++) {
		all += vma[i].all_reads;
		fast += vma[i].fast_reads;
	}
	printf("hit_permille %llu\n", all ? fast * 1000 / all : 0);
}

/* Read what is due. The first is hot, and the last if it has turned. */
static void access_once(struct vma *vma, int nr, unsigned long pages, long burst_ms, bool turned)
{
	long now = now_ms();

	for (int i = 0; i < nr; i++) {
		bool hot = !i || (turned && i == nr - 1);

		if (vma[i].next_ms > now && !(hot && vma[i].next_ms > now + HOT_MS))
			continue;
		for (int n = 0; n < (hot ? HOT_READS : 1); n++)
			read_all(&vma[i], pages);
		vma[i].next_ms = now + (hot ? HOT_MS : burst_ms);
	}
}

static int run(struct vma *vma, int nr, unsigned long pages, long burst_ms, long turn, long until)
{
	long start = now_ms(), now, next_ms = start, passes, turned_at = -1, fast;

	for (int i = 0; i < nr; i++)
		vma[i].next_ms = start + burst_ms * i / nr;
	for (;;) {
		access_once(vma, nr, pages, burst_ms, turned_at >= 0);
		now = now_ms();
		if (now < next_ms)
			continue;
		next_ms = now + REPORT_MS;
		passes = scan_passes();
		fast = report(vma, nr, pages, passes * 3 > turn * 2, passes, now - start);
		if (passes < 0 || fast < 0 || now - start > PATIENCE_MS) {
			fprintf(stderr, "vmaload: at pass %ld, %ld ms: %s\n", passes, now - start,
				fast < 0 ? "asking for the placement failed" : "giving up");
			return 1;
		}
		if (turned_at < 0 && passes >= turn) {
			print_hits(vma, nr);
			turned_at = passes;
			if (!until)
				return 0;
		} else if (turned_at >= 0 &&
			   (fast * 10 >= (long)pages * 9 || passes > turned_at + until)) {
			printf("found_passes %ld\n",
			       fast * 10 >= (long)pages * 9 ? passes - turned_at : -1);
			return 0;
		}
	}
}

int main(int argc, char **argv)
{
	int nr = argc > 4 ? atoi(argv[1]) : 0;
	unsigned long pages = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
	long burst_ms = argc > 4 ? atol(argv[3]) : 0, turn = argc > 4 ? atol(argv[4]) : 0;
	struct vma vma[MAX_VMAS] = { 0 };

	if (nr < 3 || nr > MAX_VMAS || !pages || burst_ms < 1 || turn < 1) {
		fprintf(stderr, "usage: vmaload VMAS PAGES BURST_MS PASSES [TURN_PASSES]\n");
		return 2;
	}
	for (int i = 0; i < nr; i++) {
		vma[i].area = slow_area(pages);
		if (!vma[i].area) {
			fprintf(stderr, "vmaload: filling a VMA of %lu pages: %m\n", pages);
			return 1;
		}
	}
	return run(vma, nr, pages, burst_ms, turn, argc > 5 ? atol(argv[5]) : 0);
}
