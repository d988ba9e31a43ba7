// SPDX-License-Identifier: GPL-2.0
/*
 * faultloop [PAGES [ROUNDS]]: what one hint fault on the slow tier costs.
 *
 * Puts PAGES (a prime by default) on the nodes without CPUs, lets the NUMA scanner
 * mark them all, and then reads one byte of each with the time stamp counter around
 * every single read; ROUNDS times. A read that took a hint fault is told from one
 * that did not by its cost: 20 or so instructions against thousands.
 *
 * Meant for QEMU with -icount shift=0, where each instruction takes one ns of guest
 * time: then the figures are instructions, and the same in each run. Ticks per
 * instruction are measured first and must be 1 there; elsewhere --any-clock prints
 * ticks of whatever the machine has.
 *
 * Prints one line: faults=N min=N p10=N median=N p90=N (instructions a fault, the
 * bare read taken off).
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#define DEFAULT_PAGES 1999
#define DEFAULT_ROUNDS 5
/* Between the cost of a bare read (tens) and of any fault (over a thousand). */
#define FAULT_TICKS 400

static void die(const char *what)
{
	fprintf(stderr, "faultloop: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long nodes_of(const char *file)
{
	unsigned long mask = 0;
	char path[128], text[256] = "", *p = text;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/%s", file);
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		die(path);
	fclose(f);
	while (*p >= '0' && *p <= '9') {
		unsigned long first = strtoul(p, &p, 10), last = first;

		if (*p == '-')
			last = strtoul(p + 1, &p, 10);
		for (; first <= last && first < 64; first++)
			mask |= 1ul << first;
		if (*p == ',')
			p++;
	}
	return mask;
}

static void bind_memory(int mode, unsigned long mask)
{
	if (syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL, mask ? 64 : 0))
		die("set_mempolicy");
}

static unsigned long long pte_updates(void)
{
	char text[16384];
	static const char name[] = "\nnuma_pte_updates ";
	FILE *f = fopen("/proc/vmstat", "r");
	size_t n;
	char *at;

	if (!f)
		die("/proc/vmstat");
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	at = strstr(text, name);
	if (!at) {
		fprintf(stderr, "faultloop: this kernel does not do NUMA balancing\n");
		exit(1);
	}
	return strtoull(at + sizeof(name) - 1, NULL, 10);
}

/* Ticks of two hundred thousand instructions; the least of some tries, as others run too. */
static double ticks_per_instruction(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t n = 100000, start = __rdtsc(), ticks;

		asm volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
		ticks = __rdtsc() - start;
		if (ticks < least)
			least = ticks;
	}
	return least / 2e5;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Wait, using CPU time as the scanner asks for, until it has marked that many pages. */
static void await_scan(long pages)
{
	unsigned long long from = pte_updates();
	struct rusage begin, now;

	getrusage(RUSAGE_SELF, &begin);
	while (pte_updates() < from + pages) {
		getrusage(RUSAGE_SELF, &now);
		if (now.ru_utime.tv_sec + now.ru_stime.tv_sec >
		    begin.ru_utime.tv_sec + begin.ru_stime.tv_sec + 30) {
			fprintf(stderr, "faultloop: the scanner marked %llu of %ld pages in 30 s;"
				" is numa_balancing on?\n", pte_updates() - from, pages);
			exit(1);
		}
	}
}

/* One round over all pages; appends the cost of those reads that faulted. */
static long round_of(volatile char *area, long pages, long page_size, uint64_t *cost)
{
	uint64_t bare = UINT64_MAX, start, ticks;
	long i, n = 0;

	for (i = 0; i < 100; i++) {
		start = __rdtsc();
		(void)cost[0];
		ticks = __rdtsc() - start;
		if (ticks < bare)
			bare = ticks;
	}
	for (i = 0; i < pages; i++) {
		start = __rdtsc();
		(void)area[i * page_size];
		ticks = __rdtsc() - start;
		if (ticks >= FAULT_TICKS)
			cost[n++] = ticks - bare;
	}
	return n;
}

int main(int argc, char **argv)
{
	long page_size = sysconf(_SC_PAGESIZE), pages, rounds, n = 0, i;
	int any_clock = argc > 1 && !strcmp(argv[1], "--any-clock");
	unsigned long slow;
	uint64_t *cost;
	double ratio;
	char *area;

	argc -= any_clock;
	argv += any_clock;
	pages = argc > 1 ? strtol(argv[1], NULL, 10) : DEFAULT_PAGES;
	rounds = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_ROUNDS;
	if (argc > 3 || pages < 1 || rounds < 1 || pages > 1 << 20 || rounds > 1000) {
		fprintf(stderr, "usage: faultloop [--any-clock] [PAGES [ROUNDS]]\n");
		return 2;
	}
	ratio = ticks_per_instruction();
	if (!any_clock && (ratio < 0.95 || ratio > 1.05)) {
		fprintf(stderr, "faultloop: one instruction takes %.2f ticks, not 1: run it under"
			" QEMU's -icount shift=0 (make lab ICOUNT=1), or with --any-clock\n", ratio);
		return 1;
	}
	slow = nodes_of("has_memory") & ~nodes_of("has_cpu");
	if (!slow) {
		fprintf(stderr, "faultloop: no node without CPUs\n");
		return 1;
	}

	/* Its own data are touched before, on the fast tier, and locked: no fault but ours. */
	cost = mmap(NULL, pages * rounds * sizeof(*cost), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	area = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (cost == MAP_FAILED || area == MAP_FAILED)
		die("mmap");
	madvise(area, pages * page_size, MADV_NOHUGEPAGE);
	bind_memory(MPOL_BIND, slow);
	for (i = 0; i < pages; i++)
		area[i * page_size] = 1;
	bind_memory(MPOL_DEFAULT, 0);

	for (i = 0; i < rounds; i++) {
		await_scan(pages);
		/* The scanner marks our other memory too: take those faults first. */
		memset(cost + n, 0, pages * sizeof(*cost));
		n += round_of(area, pages, page_size, cost + n);
	}
	if (!n) {
		fprintf(stderr, "faultloop: no read took a hint fault\n");
		return 1;
	}
	qsort(cost, n, sizeof(*cost), by_size);
	printf("faults=%ld min=%llu p10=%llu median=%llu p90=%llu\n", n,
	       (unsigned long long)cost[0], (unsigned long long)cost[n / 10],
	       (unsigned long long)cost[n / 2], (unsigned long long)cost[n * 9 / 10]);
	return 0;
}
