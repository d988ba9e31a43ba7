// SPDX-License-Identifier: GPL-2.0
/*
 * advance near [WINDOWS]: pages of the slow node in windows of four. Once the NUMA
 * scanner has marked all, only the first page of each window (the leader) is read;
 * then it is looked at where the other three are, and they are read too.
 *
 *	leaders=N leaders_fast=N near=N near_fast=N near_faults=N stay=N stay_fast=N
 *
 * near are the pages that must go up with their leaders, near_faults the faults
 * that reading them took. stay must not: in every eighth window the third page is
 * missing, so that the fourth lies behind a gap; and the last window's followers
 * are in another mapping.
 *
 * advance nodemask NODES ROUNDS [PAGES]: pages of the slow node, read in rounds by
 * a task whose memory policy is PREFERRED_MANY with NUMA balancing over the bit
 * mask NODES; the caller chooses where it runs. Prints where the pages are then:
 *
 *	pages=N node0=N node1=N ...
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
#include <time.h>
#include <unistd.h>

#define WINDOW		4
#define GAP_EVERY	8
#define MAX_NODES	64

static long page_size;

static void die(const char *what)
{
	fprintf(stderr, "advance: %s: %s\n", what, strerror(errno));
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
		for (; first <= last && first < MAX_NODES; first++)
			mask |= 1ul << first;
		if (*p == ',')
			p++;
	}
	return mask;
}

static void set_policy(int mode, unsigned long mask)
{
	if (syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL, mask ? MAX_NODES : 0))
		die("set_mempolicy");
}

static unsigned long long pte_updates(void)
{
	unsigned long long value;
	FILE *f = fopen("/proc/vmstat", "r");
	char name[64];

	while (f && fscanf(f, "%63s %llu", name, &value) == 2)
		if (!strcmp(name, "numa_pte_updates")) {
			fclose(f);
			return value;
		}
	die("numa_pte_updates");
	return 0;
}

/* The scanner comes by CPU time used: use some until it has marked that many pages. */
static void await_scan(long pages)
{
	unsigned long long from = pte_updates();
	time_t end = time(NULL) + 60;

	while (pte_updates() < from + pages)
		if (time(NULL) > end) {
			fprintf(stderr, "advance: the scanner marked %llu of %ld pages in 60 s\n",
				pte_updates() - from, pages);
			exit(1);
		}
}

static char *slow_pages(long pages, unsigned long slow)
{
	char *area = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		die("mmap");
	madvise(area, pages * page_size, MADV_NOHUGEPAGE);
	set_policy(MPOL_BIND, slow);
	for (long i = 0; i < pages; i++)
		area[i * page_size] = 1;
	set_policy(MPOL_DEFAULT, 0);
	return area;
}

/* Node of each page; negative: not there. */
static void where(char *area, long pages, int *node)
{
	void **addr = malloc(pages * sizeof(*addr));

	for (long i = 0; addr && i < pages; i++)
		addr[i] = area + i * page_size;
	if (!addr || syscall(SYS_move_pages, 0, pages, addr, NULL, node, 0))
		die("move_pages");
	free(addr);
}

static void nap(double seconds)
{
	struct timespec t = { seconds, (seconds - (long)seconds) * 1e9 };

	nanosleep(&t, NULL);
}

static void read_page(char *area, long i)
{
	(void)*(volatile char *)(area + i * page_size);
}

static long faults(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_minflt;
}

static int near(long windows, unsigned long slow)
{
	long pages = windows * WINDOW, near_nr = 0, near_fast = 0, near_faults = 0, fast = 0;
	long stay = 0, stay_fast = 0;
	char *area = slow_pages(pages, slow), *is_near = calloc(pages, 1);
	int *node = calloc(pages, sizeof(*node));

	if (!is_near || !node)
		die("memory");
	/* The last window's followers: other rights, so another mapping. */
	if (mprotect(area + (pages - WINDOW + 1) * page_size, (WINDOW - 1) * page_size, PROT_READ))
		die("mprotect");
	await_scan(pages);
	for (long w = 0; w < windows; w += GAP_EVERY)
		if (madvise(area + (w * WINDOW + 2) * page_size, page_size, MADV_DONTNEED))
			die("madvise");
	for (long w = 0; w < windows; w++)
		read_page(area, w * WINDOW);
	nap(1.5);

	where(area, pages, node);
	for (long i = 0; i < pages; i++) {
		long w = i / WINDOW, at = i % WINDOW;
		int up = node[i] >= 0 && !(slow >> node[i] & 1);

		if (!at) {
			fast += up;
		} else if (w == windows - 1 || (w % GAP_EVERY == 0 && at == 3)) {
			stay++;
			stay_fast += up;
		} else if (w % GAP_EVERY || at == 1) {
			is_near[i] = 1;
			near_nr++;
			near_fast += up;
		}
	}
	for (long i = 0; i < pages; i++) {
		long before;

		if (!is_near[i])
			continue;
		before = faults();
		read_page(area, i);
		near_faults += faults() - before;
	}
	printf("leaders=%ld leaders_fast=%ld near=%ld near_fast=%ld near_faults=%ld stay=%ld stay_fast=%ld\n",
	       windows, fast, near_nr, near_fast, near_faults, stay, stay_fast);
	return 0;
}

static int nodemask(unsigned long nodes, long rounds, long pages, unsigned long slow)
{
	char *area = slow_pages(pages, slow);
	int *node = calloc(pages, sizeof(*node));
	long count[MAX_NODES] = { 0 };
	unsigned long all = nodes_of("has_memory");

	if (!node)
		die("memory");
	set_policy(MPOL_PREFERRED_MANY | MPOL_F_NUMA_BALANCING, nodes);
	for (long r = 0; r < rounds; r++) {
		await_scan(pages / 2);
		for (long i = 0; i < pages; i++)
			read_page(area, i);
		nap(0.5);
	}
	where(area, pages, node);
	for (long i = 0; i < pages; i++)
		if (node[i] >= 0)
			count[node[i]]++;
	printf("pages=%ld", pages);
	for (int n = 0; n < MAX_NODES; n++)
		if (all >> n & 1)
			printf(" node%d=%ld", n, count[n]);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long slow = nodes_of("has_memory") & ~nodes_of("has_cpu");
	long n = argc > 2 ? strtol(argv[2], NULL, 0) : 509;

	page_size = sysconf(_SC_PAGESIZE);
	if (!slow) {
		fprintf(stderr, "advance: no node without CPUs\n");
		return 1;
	}
	if (argc >= 2 && argc <= 3 && !strcmp(argv[1], "near") && n > GAP_EVERY && n < 1 << 18)
		return near(n, slow);
	if (argc >= 4 && argc <= 5 && !strcmp(argv[1], "nodemask"))
		return nodemask(n, strtol(argv[3], NULL, 10),
				argc > 4 ? strtol(argv[4], NULL, 10) : 1021, slow);
	fprintf(stderr, "usage: advance near [WINDOWS] | nodemask NODES ROUNDS [PAGES]\n");
	return 2;
}
