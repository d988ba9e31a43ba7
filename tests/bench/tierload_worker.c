// SPDX-License-Identifier: GPL-2.0
/* The accessing side of tierload: a process of paced threads. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "clock.h"
#include "tierload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define BATCH_NS 2000000ull
#define UNPACED_BATCH 1024
#define LINE_BYTES 64

struct thread {
	const struct tl_options *opt;
	const struct tl_worker *worker;
	struct tl_control *ctl;
	struct tl_thread_slot *slot;
	struct tl_cursor cursor;
	unsigned int number;
	unsigned int lines;		/* in a page */
	size_t page_bytes;
	uint64_t write_below;		/* a write when a drawn 32 bit number is below it */
	uint64_t sink;
	pthread_t id;
};

static bool stopped(const struct thread *th)
{
	return atomic_load_explicit(&th->ctl->stop, memory_order_relaxed);
}

static void wait_until(const struct thread *th, uint64_t deadline_ns)
{
	struct timespec t = { .tv_sec = deadline_ns / TL_NS_PER_S,
			      .tv_nsec = deadline_ns % TL_NS_PER_S };

	if (!th->opt->spin) {
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		return;
	}
	while (now_ns() < deadline_ns && !stopped(th))
		;
}

/*
 * Line in the page and read or write are drawn from a sequence of their own,
 * so that options about them leave the sequence of pages as it is.
 */
static void access_page(struct thread *th, uint32_t page, uint64_t random)
{
	size_t line = (uint32_t)random % th->lines * LINE_BYTES;
	volatile uint64_t *word = (volatile uint64_t *)
		(th->worker->area + (size_t)page * th->page_bytes + line);

	if (random >> 32 < th->write_below)
		*word ^= random;
	else
		th->sink += *word;
}

/* Returns the number of accesses made: fewer than asked once all rounds are done. */
static uint64_t run_batch(struct thread *th, uint64_t n, uint32_t phase, uint64_t *line_rng)
{
	const struct tl_dist *dist = &th->worker->dist;
	uint64_t rounds = th->opt->touch ? th->opt->rounds : 0, i;

	for (i = 0; i < n && (!rounds || th->cursor.rounds < rounds); i++) {
		uint32_t rank = tl_next_rank(dist, &th->cursor);

		access_page(th, tl_page_of_rank(dist, rank, phase), tl_random(line_rng));
	}
	return i;
}

/* The phase follows the schedule, not the clock: same seed, same accesses. */
static uint32_t phase_at(struct thread *th, uint64_t at_ns)
{
	uint32_t phase;

	if (th->worker->dist.shape.kind != TL_MOVING)
		return 0;
	phase = (uint32_t)((double)at_ns / (th->opt->move_s * TL_NS_PER_S));
	if (!th->number && !th->worker->index)
		atomic_store_explicit(&th->ctl->phase, phase, memory_order_relaxed);
	return phase;
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	/* One writer: no need for a locked instruction. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void run_unpaced(struct thread *th, uint64_t *line_rng)
{
	uint64_t start_ns = th->ctl->start_ns, done = UNPACED_BATCH;

	while (done == UNPACED_BATCH && !stopped(th)) {
		done = run_batch(th, UNPACED_BATCH, phase_at(th, now_ns() - start_ns), line_rng);
		add(&th->slot->accesses, done);
		add(&th->slot->batches, 1);
		atomic_store(&th->slot->rounds, th->cursor.rounds);
	}
}

static void run_paced(struct thread *th, uint64_t *line_rng)
{
	double rate = th->worker->rate / th->opt->threads, period_ns;
	uint64_t start_ns = th->ctl->start_ns, batch, done, k;
	uint64_t late_ns = (uint64_t)(th->opt->late_ms * 1000000.0);

	batch = (uint64_t)(rate * BATCH_NS / TL_NS_PER_S);
	if (!batch)
		batch = 1;
	period_ns = batch / rate * TL_NS_PER_S;
	for (k = 0, done = batch; done == batch && !stopped(th); k++) {
		uint64_t schedule_ns = (uint64_t)(k * period_ns);
		uint64_t due_ns = start_ns + schedule_ns, now = now_ns();

		if (now < due_ns)
			wait_until(th, due_ns);
		else if (now - due_ns > late_ns)
			add(&th->slot->late_batches, 1);
		if (now > due_ns && now - due_ns > TL_BACKLOG_NS) {
			add(&th->slot->dropped_ns, now - due_ns);
			start_ns += now - due_ns;
		}
		if (stopped(th))
			break;
		done = run_batch(th, batch, phase_at(th, schedule_ns), line_rng);
		add(&th->slot->accesses, done);
		add(&th->slot->batches, 1);
		atomic_store(&th->slot->rounds, th->cursor.rounds);
	}
}

static void *thread_main(void *arg)
{
	struct thread *th = arg;
	uint64_t line_rng = tl_mix64(th->opt->seed ^ ((uint64_t)th->number << 32 | th->worker->index));

	if (th->opt->pin) {
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((th->worker->index * th->opt->threads + th->number) % cpus, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			fprintf(stderr, "tierload: pinning a thread: %m; going on unpinned\n");
	}
	if (th->worker->rate > 0.0)
		run_paced(th, &line_rng);
	else
		run_unpaced(th, &line_rng);
	atomic_store(&th->slot->done, true);
	return NULL;
}

static int map_area(const struct tl_options *opt, struct tl_worker *worker)
{
	size_t bytes = (size_t)worker->dist.shape.pages * sysconf(_SC_PAGESIZE);
	size_t huge = 2u << 20;
	char *p = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *area;
	int err;

	if (p == MAP_FAILED) {
		err = -errno;
		fprintf(stderr, "tierload: mapping %zu MiB: %s\n", bytes >> 20, strerror(-err));
		return err;
	}
	/* Aligned for huge pages, and no page more than asked for: the count is exact. */
	area = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1));
	if (area > p)
		munmap(p, area - p);
	munmap(area + bytes, p + huge - area);
	if (madvise(area, bytes, opt->thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) && opt->thp) {
		err = -errno;
		fprintf(stderr, "tierload: asking for huge pages (madvise): %s; see /sys/kernel/mm/transparent_hugepage/enabled\n",
			strerror(-err));
		return err;
	}
	worker->area = area;
	return 0;
}

/*
 * The policy is the task's, not the mapping's, and it is gone before the first
 * thread starts: a mapping with a policy of its own is never scanned.
 */
static int populate(const struct tl_options *opt, struct tl_worker *worker,
		    const struct tl_nodes *nodes)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE), bytes = worker->dist.shape.pages * page_bytes, i;
	int err = 0;

	if (opt->place == TL_PLACE_SLOW)
		err = tl_policy_bind(nodes->slow);
	else if (opt->place == TL_PLACE_FAST)
		err = tl_policy_prefer(nodes->fast);
	if (err)
		return err;
	for (i = 0; i < bytes; i += page_bytes)
		((volatile char *)worker->area)[i] = 1;
	return opt->place == TL_PLACE_DEFAULT ? 0 : tl_policy_bind(0);
}

static int run_threads(struct thread *th, const struct tl_options *opt)
{
	unsigned int started = 0, i;
	int err = 0;

	for (; started < opt->threads; started++) {
		err = -pthread_create(&th[started].id, NULL, thread_main, &th[started]);
		if (err) {
			fprintf(stderr, "tierload: starting thread %u: %s\n", started, strerror(-err));
			atomic_store(&th->ctl->stop, true);
			break;
		}
	}
	for (i = 0; i < started; i++)
		pthread_join(th[i].id, NULL);
	return err;
}

int tl_worker_main(const struct tl_options *opt, struct tl_worker *worker,
		   struct tl_control *ctl, const struct tl_nodes *nodes)
{
	static struct thread threads[TL_MAX_THREADS];
	struct timespec nap = { .tv_nsec = 1000000 };
	unsigned int i;
	int err;

	/* The monitor ends a run; a worker without it would run for ever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	err = map_area(opt, worker);
	if (!err)
		err = populate(opt, worker, nodes);
	if (err)
		return err;
	atomic_store(&ctl->area[worker->index], worker->area);
	for (i = 0; i < opt->threads; i++) {
		threads[i] = (struct thread){ .opt = opt, .worker = worker, .ctl = ctl, .number = i,
					      .slot = &ctl->slot[worker->index][i],
					      .page_bytes = sysconf(_SC_PAGESIZE) };
		threads[i].lines = threads[i].page_bytes / LINE_BYTES;
		threads[i].write_below = (uint64_t)(opt->write_share * 4294967296.0);
		tl_cursor_init(&threads[i].cursor, &worker->dist, i, opt->threads);
	}
	atomic_fetch_add(&ctl->ready, 1);
	while (!atomic_load(&ctl->go) && !atomic_load(&ctl->stop))
		nanosleep(&nap, NULL);
	err = run_threads(threads, opt);
	/* The memory stays until the monitor has taken its last look at it. */
	while (!atomic_load(&ctl->leave))
		nanosleep(&nap, NULL);
	return err;
}
