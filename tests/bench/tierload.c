// SPDX-License-Identifier: GPL-2.0
/*
 * tierload: a paced memory workload that knows where its pages should be.
 *
 * One process per run watches (the monitor), one or two others access memory
 * (the workers). The access pattern is a known distribution, so the share of
 * accesses that fast memory serves follows from the placement of the pages
 * alone: the monitor asks for it with move_pages(2), which neither touches the
 * pages nor takes hint faults, and weighs each page with its probability. This
 * holds on an emulated machine, where both tiers are equally fast and wall
 * clock speed says nothing.
 *
 *	tierload hotcold --seconds 60
 *	tierload moving --move-s 30 --seconds 90 --json moving.json
 *	tierload touch --pages 10007 --rounds 50
 *
 * Pace. Accesses come in batches with absolute deadlines, so the load is the
 * same whatever is decided about the pages. An emulated CPU can fall behind
 * when hint faults come in a burst: batches that start more than --late-ms late
 * are counted ("slip"; the default of 100 ms is short against the seconds in
 * which a cold page returns), a backlog over a second is dropped, and above 5 %
 * the JSON says "pacing_ok": false; such a run must not be compared. Sleeping between batches keeps the task off the
 * CPU, and the kernel's scanner counts a task's CPU time: a light load is
 * scanned less often than scan_period_min_ms says. --pace spin burns the time.
 *
 * Same seed, same hot set and same sequence of pages per thread.
 *
 * Placing. --place slow binds the worker to the CPU-less nodes while it fills
 * its memory and then returns to the default policy, without which the scanner
 * leaves memory alone. The tables that the workers read are bound to fast
 * memory: they take no hint faults and do not disturb the counts.
 *
 * Figures. All counters are of the whole machine (/proc/vmstat), between the
 * first access and the last.
 *   fast_hit_ratio        mean over the samples; _final: over the last third
 *   oracle_hit_ratio      the most popular pages fill the fast memory; for a
 *                         moving hot set: at each moment
 *   t90_s                 until 90 % of the final ratio; moving: mean over the
 *                         moves after the start, each within its phase
 *   t90_oracle_s          until 90 % of oracle_hit_ratio
 *   wasted_promotions     pages seen arriving on fast memory that are not of
 *                         the hot set (zipf: not of the most popular that fit;
 *                         uniform: all are wasted)
 *   ping_pong_pages       pages seen arriving twice or more
 *   modelled_access_ns    by the hit ratio and the stated latencies, plus the
 *                         stated cost of the hint faults and migrations; paced
 *                         far below a real CPU, faults weigh more here than on
 *                         one: --fault-ns 0 --migrate-ns 0 leaves them out, as
 *                         modelled_memory_ns does
 */
#include "clock.h"
#include "tierload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_OK, EXIT_FAILED, EXIT_BAD_USAGE, EXIT_UNSUPPORTED };

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Memory of our own that must not show up in what is measured. */
static void *map_aside(size_t bytes, int sharing, const struct tl_nodes *nodes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "tierload: mapping %zu bytes for tables: %m\n", bytes);
		return NULL;
	}
	if (nodes->slow && tl_bind_range(p, bytes, nodes->fast))
		return NULL;
	/* Best effort: demoted tables would be found by the counters. */
	if (mlock(p, bytes))
		errno = 0;
	return p;
}

static int make_worker(struct tl_run *run, enum tl_kind kind, uint32_t pages, double share)
{
	const struct tl_options *opt = run->opt;
	struct tl_worker *worker = &run->worker[run->workers];
	struct tl_shape shape = {
		.kind = kind, .pages = pages, .hot_pages = opt->hot_pages,
		.unit_pages = kind == TL_STREAM ? 1 : opt->unit_pages,
		.hot_share = opt->hot_share, .theta = opt->theta, .scatter = opt->scatter,
		.seed = opt->seed + run->workers * 0x100000000ull,
	};
	size_t bytes = tl_dist_bytes(&shape);
	void *tables = map_aside(bytes, MAP_PRIVATE, run->nodes);
	const char *wrong;

	if (!tables)
		return -ENOMEM;
	wrong = tl_dist_init(&worker->dist, &shape, tables);
	if (wrong) {
		fprintf(stderr, "tierload: %s: %s\n", opt->workload, wrong);
		return -EINVAL;
	}
	mprotect(tables, bytes, PROT_READ);
	worker->share = share;
	worker->rate = opt->rate * share;
	worker->index = run->workers++;
	return 0;
}

static int make_workers(struct tl_run *run)
{
	const struct tl_options *opt = run->opt;
	int err;

	if (!opt->two)
		return make_worker(run, opt->kind, opt->pages, 1.0);
	err = make_worker(run, TL_STREAM, opt->pages / 2, opt->stream_share);
	return err ? err : make_worker(run, TL_HOTCOLD, opt->pages / 2, 1.0 - opt->stream_share);
}

static int start_worker(struct tl_run *run, struct tl_worker *worker)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		fprintf(stderr, "tierload: starting a worker process: %s\n", strerror(-err));
		return err;
	}
	if (!pid)
		_exit(tl_worker_main(run->opt, worker, run->ctl, run->nodes) ? EXIT_FAILED : EXIT_OK);
	worker->pid = pid;
	return 0;
}

/* Only called while workers have no reason to end. */
static int check_alive(const struct tl_run *run)
{
	siginfo_t info;
	int w;

	for (w = 0; w < run->workers && run->worker[w].pid; w++) {
		info.si_pid = 0;
		if (waitid(P_PID, run->worker[w].pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    !info.si_pid)
			continue;
		if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
			fprintf(stderr, "tierload: worker process killed by signal %d%s\n", info.si_status,
				info.si_status == SIGKILL ? ": out of memory? see the kernel log" : "");
		else
			fprintf(stderr, "tierload: worker process ended early with status %d\n",
				info.si_status);
		return -ECHILD;
	}
	return 0;
}

/* One after the other, so that the first one's memory is in place before the next begins. */
static int start_workers(struct tl_run *run)
{
	int err = 0, w;

	for (w = 0; !err && w < run->workers; w++) {
		err = start_worker(run, &run->worker[w]);
		while (!err && !interrupted && atomic_load(&run->ctl->ready) <= (uint32_t)w) {
			err = check_alive(run);
			sleep_until(now_ns() + 2000000);
		}
		if (!err && interrupted)
			err = -EINTR;
	}
	return err;
}

static int wait_ready(struct tl_run *run)
{
	const struct tl_options *opt = run->opt;
	int err, w;
	FILE *f;

	for (w = 0; w < run->workers; w++)
		run->worker[w].area = run->ctl->area[w];
	if (opt->ready_file) {
		f = fopen(opt->ready_file, "we");
		for (w = 0; f && w < run->workers; w++)
			fprintf(f, "%d\n", run->worker[w].pid);
		if (!f || fclose(f)) {
			err = -errno;
			fprintf(stderr, "tierload: writing %s: %s\n", opt->ready_file, strerror(-err));
			return err;
		}
	}
	while (opt->wait_file && access(opt->wait_file, F_OK)) {
		err = check_alive(run);
		if (err || interrupted)
			return err ? err : -EINTR;
		sleep_until(now_ns() + 10000000);
	}
	return 0;
}

static bool all_done(const struct tl_run *run)
{
	unsigned int t;
	int w;

	for (w = 0; w < run->workers; w++)
		for (t = 0; t < run->opt->threads; t++)
			if (!atomic_load(&run->ctl->slot[w][t].done))
				return false;
	return true;
}

/* Look once per interval until time is up, all rounds are done, or we are told to stop. */
static int watch(struct tl_run *run)
{
	const uint64_t interval_ns = run->opt->report_ms * 1000000ull, step_ns = 50000000;
	uint64_t start_ns = now_ns() + 10000000, end_ns, next_ns, now;
	bool end = false;
	int err;

	end_ns = start_ns + (uint64_t)(run->opt->seconds * TL_NS_PER_S);
	next_ns = start_ns + interval_ns;
	atomic_store(&run->ctl->start_ns, start_ns);
	atomic_store(&run->ctl->go, true);
	while (!end) {
		uint64_t until = next_ns < end_ns ? next_ns : end_ns;

		now = now_ns();
		if (now < until)
			sleep_until(until - now > step_ns ? now + step_ns : until);
		err = check_alive(run);
		if (err)
			return err;
		now = now_ns();
		end = interrupted || now >= end_ns || all_done(run);
		if (end)
			atomic_store(&run->ctl->stop, true);
		if (!end && now < next_ns)
			continue;
		err = tl_measure(run, (now - start_ns) / (double)TL_NS_PER_S);
		if (err)
			return err;
		tl_print_sample(run, &run->sample[run->samples - 1]);
		/* A look that took longer than the interval skips the missed ones. */
		while (next_ns <= now_ns())
			next_ns += interval_ns;
	}
	while (!all_done(run)) {
		err = check_alive(run);
		if (err)
			return err;
		sleep_until(now_ns() + 2000000);
	}
	return 0;
}

static int measure(struct tl_run *run)
{
	int err = wait_ready(run);

	if (err)
		return err;
	tl_print_start(run);
	err = tl_measure_init(run, 0.0);
	if (err)
		return err;
	tl_print_sample(run, &run->sample[0]);
	err = watch(run);
	if (!err)
		err = tl_measure_finish(run);
	if (err)
		return err;
	tl_print_totals(run);
	return run->opt->json ? tl_write_json(run) : 0;
}

static int end_workers(struct tl_run *run)
{
	int w, status, err = 0;

	atomic_store(&run->ctl->stop, true);
	atomic_store(&run->ctl->leave, true);
	for (w = 0; w < run->workers; w++) {
		if (!run->worker[w].pid)
			continue;
		if (waitpid(run->worker[w].pid, &status, 0) < 0 || !WIFEXITED(status) ||
		    WEXITSTATUS(status))
			err = -ECHILD;
	}
	return err;
}

/* Refuse what would end in the out-of-memory killer. */
static int check_room(struct tl_run *run)
{
	uint64_t fast, slow, fast_cache, slow_cache;
	double page_mib = sysconf(_SC_PAGESIZE) / 1048576.0;
	int err = tl_free_pages(run->nodes->fast, &fast, &fast_cache);

	if (!err)
		err = tl_free_pages(run->nodes->slow, &slow, &slow_cache);
	if (err)
		return err;
	run->fast_capacity_pages = run->opt->fast_mb_available < 0.0 ? fast :
				   run->opt->fast_mb_available / page_mib;
	slow += slow_cache;
	fast += fast_cache;
	if (run->opt->place == TL_PLACE_SLOW && slow < run->opt->pages) {
		fprintf(stderr, "tierload: %.0f MiB do not fit: the slow nodes have %.0f MiB free; use a smaller --mib or --place default\n",
			run->opt->pages * page_mib, slow * page_mib);
		return -ENOMEM;
	}
	if (fast + slow < run->opt->pages) {
		fprintf(stderr, "tierload: %.0f MiB do not fit: %.0f MiB are free; use a smaller --mib\n",
			run->opt->pages * page_mib, (fast + slow) * page_mib);
		return -ENOMEM;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct tl_worker workers[TL_MAX_WORKERS];
	struct sigaction action = { .sa_handler = on_signal };
	struct tl_options opt;
	struct tl_nodes nodes;
	struct tl_run run = { .opt = &opt, .nodes = &nodes, .worker = workers };
	int err, end_err;

	tl_parse_options(&opt, argc, argv);
	if (tl_find_nodes(&nodes))
		return EXIT_UNSUPPORTED;
	if (opt.place == TL_PLACE_SLOW && !nodes.slow) {
		fprintf(stderr, "tierload: --place slow: this machine has no node with memory and without CPUs; use --place default, or run it on a tiered machine\n");
		return EXIT_UNSUPPORTED;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	run.ctl = map_aside(sizeof(*run.ctl), MAP_SHARED, &nodes);
	if (!run.ctl)
		return EXIT_FAILED;
	err = make_workers(&run);
	if (!err)
		err = check_room(&run);
	if (!err)
		err = start_workers(&run);
	if (!err)
		err = measure(&run);
	end_err = end_workers(&run);
	tl_measure_free(&run);
	/* Told to stop before the first access: nothing to report, and nothing wrong. */
	if (err == -EINTR)
		err = 0;
	if (!err && end_err)
		fprintf(stderr, "tierload: a worker process failed\n");
	return err || end_err ? EXIT_FAILED : EXIT_OK;
}
