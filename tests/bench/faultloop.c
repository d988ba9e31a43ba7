// SPDX-License-Identifier: GPL-2.0
/*
 * faultloop [PAGES [ROUNDS [SKIP]]]: what one hint fault on the slow tier costs.
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
 * Prints one line: faults=N min=N median=N mean=N p90=N promoted=N promoted_median=N
 * (instructions a fault, the bare read taken off; all but the last two are of the faults
 * that left their page where it was; without any, the figures are 0). The mean is that of
 * all but the dearest 2 in 100, during which an interrupt may have come.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
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

static double cpu_seconds(void)
{
	struct rusage now;

	getrusage(RUSAGE_SELF, &now);
	return now.ru_utime.tv_sec + now.ru_stime.tv_sec +
	       (now.ru_utime.tv_usec + now.ru_stime.tv_usec) / 1e6;
}

/*
 * Wait, using CPU time as the scanner asks for, until it has marked that many pages since
 * the count was from: one taken before the pages were last touched, for it may have come
 * by since. A page or two may be out of its reach: then until nothing more has come for
 * ten of its periods.
 */
static void await_scan(unsigned long long from, long pages)
{
	double begun = cpu_seconds(), last = begun;
	unsigned long long marked = 0, now;

	while (marked < (unsigned long long)pages) {
		now = pte_updates() - from;
		if (now != marked)
			last = cpu_seconds();
		marked = now;
		if (marked >= (unsigned long long)pages / 2 && cpu_seconds() > last + 2)
			return;
		if (cpu_seconds() > begun + 30) {
			fprintf(stderr, "faultloop: the scanner marked %llu of %ld pages in 30 s;"
				" is numa_balancing on?\n", marked, pages);
			exit(1);
		}
	}
}

/* What the faults cost that ended one way. */
struct costs {
	uint64_t *of;
	long nr;
};

static uint64_t rank_of(const struct costs *c, long num, long den)
{
	return c->nr ? c->of[c->nr * num / den] : 0;
}

/* Of the n cheapest. */
static uint64_t mean_of(const struct costs *c, long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n; i++)
		sum += c->of[i];
	return n ? (sum + n / 2) / n : 0;
}

struct area {
	volatile char *at;
	long pages;
	long page_size;
	int slow_node;
	void **page;		/* for move_pages() */
	int *node;
	int *status;
};

static void move_pages(struct area *area, const int *nodes)
{
	if (syscall(SYS_move_pages, 0, area->pages, area->page, nodes, area->status, MPOL_MF_MOVE) < 0)
		die("move_pages");
}

/* One round over all pages; tick[i] becomes what page i's fault cost, 0: it took none. */
static void round_of(struct area *area, uint64_t *tick)
{
	uint64_t bare = UINT64_MAX, start, ticks;
	long i;

	for (i = 0; i < 100; i++) {
		start = __rdtsc();
		(void)((volatile uint64_t *)tick)[0];
		ticks = __rdtsc() - start;
		if (ticks < bare)
			bare = ticks;
	}
	for (i = 0; i < area->pages; i++) {
		start = __rdtsc();
		(void)area->at[i * area->page_size];
		ticks = __rdtsc() - start;
		tick[i] = ticks >= FAULT_TICKS ? ticks - bare : 0;
	}
}

/* Sort a round's faults by where their pages are now; all pages go back. */
static void sort_out(struct area *area, const uint64_t *tick, struct costs *refused,
		     struct costs *promoted)
{
	bool back = false;

	move_pages(area, NULL);
	for (long i = 0; i < area->pages; i++) {
		struct costs *c = area->status[i] == area->slow_node ? refused : promoted;

		back |= c == promoted;
		if (tick[i])
			c->of[c->nr++] = tick[i];
	}
	if (back)
		move_pages(area, area->node);
}

static void *locked(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static struct area area_on(unsigned long slow_nodes, long pages)
{
	struct area a = {
		.pages = pages,
		.page_size = sysconf(_SC_PAGESIZE),
		.slow_node = __builtin_ctzl(slow_nodes),
		.page = locked(pages * sizeof(*a.page)),
		.node = locked(pages * sizeof(*a.node)),
		.status = locked(pages * sizeof(*a.status)),
	};

	a.at = mmap(NULL, pages * a.page_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a.at == MAP_FAILED)
		die("mmap");
	madvise((void *)a.at, pages * a.page_size, MADV_NOHUGEPAGE);
	bind_memory(MPOL_BIND, 1ul << a.slow_node);
	for (long i = 0; i < pages; i++) {
		a.at[i * a.page_size] = 1;
		a.page[i] = (void *)(a.at + i * a.page_size);
		a.node[i] = a.slow_node;
	}
	bind_memory(MPOL_DEFAULT, 0);
	return a;
}

int main(int argc, char **argv)
{
	int any_clock = argc > 1 && !strcmp(argv[1], "--any-clock");
	struct costs refused = {}, promoted = {};
	unsigned long long from;
	long pages, rounds, skip;
	unsigned long slow;
	struct area area;
	uint64_t *tick;
	double ratio;

	argc -= any_clock;
	argv += any_clock;
	pages = argc > 1 ? strtol(argv[1], NULL, 10) : DEFAULT_PAGES;
	rounds = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_ROUNDS;
	skip = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	if (argc > 4 || pages < 1 || rounds < 1 || skip < 0 || pages > 1 << 20 || rounds > 1000 ||
	    skip > 1000) {
		fprintf(stderr, "usage: faultloop [--any-clock] [PAGES [ROUNDS [SKIP]]]\n");
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

	/* Its own data are touched before, on the fast tier: no fault but ours. */
	refused.of = locked(pages * rounds * sizeof(*refused.of));
	promoted.of = locked(pages * rounds * sizeof(*promoted.of));
	tick = locked(pages * sizeof(*tick));
	from = pte_updates();
	area = area_on(slow, pages);
	for (long i = -skip; i < rounds; i++) {
		await_scan(from, pages);
		/* The scanner marks our other memory too: take those faults first. */
		memset(tick, 0, pages * sizeof(*tick));
		from = pte_updates();
		round_of(&area, tick);
		sort_out(&area, tick, &refused, &promoted);
		if (i < 0)
			refused.nr = promoted.nr = 0;
	}
	if (!refused.nr && !promoted.nr) {
		fprintf(stderr, "faultloop: no read took a hint fault\n");
		return 1;
	}
	qsort(refused.of, refused.nr, sizeof(*refused.of), by_size);
	qsort(promoted.of, promoted.nr, sizeof(*promoted.of), by_size);
	printf("faults=%ld min=%llu median=%llu mean=%llu p90=%llu promoted=%ld promoted_median=%llu\n",
	       refused.nr, (unsigned long long)rank_of(&refused, 0, 1),
	       (unsigned long long)rank_of(&refused, 1, 2),
	       (unsigned long long)mean_of(&refused, refused.nr - refused.nr / 50),
	       (unsigned long long)rank_of(&refused, 9, 10), promoted.nr,
	       (unsigned long long)rank_of(&promoted, 1, 2));
	return 0;
}
