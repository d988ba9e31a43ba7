// SPDX-License-Identifier: GPL-2.0
/*
 * kvload: Zipf-distributed gets from a real memcached, and where its memory lies.
 *
 *	memcached -u root -s /tmp/mc -m 256 -t 1 &
 *	kvload --socket /tmp/mc --pid $! --records 24000 --rate 3000 --json kv.json
 *
 * It stores the records, finds each of them in memcached's memory (once, through
 * /proc/PID/mem: that takes no hint faults), and from then on asks for records at a
 * known pace, with known probabilities. Memory lies where memcached and the kernel
 * put it, and the best placement may use what was free before. A page's
 * weight is the sum over the records that lie on it. From there on all is measured
 * and reported as by tierload, whose head explains the figures; a "page" counts as
 * hot when it is among the heaviest that fit into fast memory.
 *
 * A get reads all cache lines of a value: so many accesses it counts for. What else
 * memcached touches, its hash table and item headers, is not in the weights.
 *
 * Exit: 0 the run ended, 1 it failed, 2 wrong usage, 3 no slow memory here.
 */
#include "clock.h"
#include "parse.h"
#include "tierload.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "kvload-value:"
#define PAGE 4096
#define MAX_RECORDS (1u << 20)
#define BATCH_S 0.004
#define LINE_BYTES 64

struct kv {
	struct tl_options opt;
	const char *socket, *ready, *wait;
	pid_t pid;
	uint32_t records, value_bytes;
	int fd;
	char *value;
	uint64_t *at;		/* address of each record's value in memcached */
	struct tl_dist dist;	/* of the records */
	struct tl_control ctl;
	uint32_t failed;	/* a get that was not answered as it should be */
};

struct page {
	uint64_t address;
	double weight;
};

static int failed(const char *what)
{
	fprintf(stderr, "kvload: %s: %s\n", what, strerror(errno ? errno : EPROTO));
	return -1;
}

static int dial(struct kv *kv)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", kv->socket);
	kv->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (kv->fd < 0 || connect(kv->fd, (struct sockaddr *)&name, sizeof(name)))
		return failed(kv->socket);
	return 0;
}

static int send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t did = write(fd, p, n);

		if (did <= 0)
			return failed("writing to memcached");
		p += did;
		n -= did;
	}
	return 0;
}

/* Read exactly so many bytes. */
static int receive(int fd, char *p, size_t n)
{
	while (n) {
		ssize_t did = read(fd, p, n);

		if (did <= 0)
			return failed("reading from memcached");
		p += did;
		n -= did;
	}
	return 0;
}

/* A value that says which record it is; always of one length. */
static void make_value(struct kv *kv, uint32_t record)
{
	memset(kv->value, 'x', kv->value_bytes);
	snprintf(kv->value, kv->value_bytes, MAGIC "%07u", record);
	kv->value[sizeof(MAGIC) - 1 + 7] = 'x';
}

static int store(struct kv *kv)
{
	char line[64], answer[8];
	uint32_t r;
	int n;

	for (r = 0; r < kv->records; r++) {
		make_value(kv, r);
		n = snprintf(line, sizeof(line), "set k%07u 0 0 %u\r\n", r, kv->value_bytes);
		if (send_all(kv->fd, line, n) || send_all(kv->fd, kv->value, kv->value_bytes) ||
		    send_all(kv->fd, "\r\n", 2) || receive(kv->fd, answer, sizeof(answer)))
			return -1;
		if (memcmp(answer, "STORED\r\n", sizeof(answer))) {
			fprintf(stderr, "kvload: memcached did not store record %u: %.8s; give it more memory (-m)\n",
				r, answer);
			return -1;
		}
	}
	return 0;
}

/* Note the records in one piece of memory. What follows a line end is a receive buffer's copy. */
static void look_through(struct kv *kv, const char *piece, size_t bytes, uint64_t address)
{
	const char *p = piece, *end = piece + bytes;

	while ((p = memmem(p, end - p, MAGIC, sizeof(MAGIC) - 1))) {
		uint32_t record = strtoul(p + sizeof(MAGIC) - 1, NULL, 10);

		if (p > piece && p[-1] != '\n' && record < kv->records)
			kv->at[record] = address + (p - piece);
		p++;
	}
}

static int find_records(struct kv *kv)
{
	/* Pieces overlap, for values that lie across a border. */
	const size_t piece = 1 << 20, overlap = 64;
	char path[64], line[256], *buffer = malloc(piece + overlap + 1);
	unsigned long long from, to, at;
	uint32_t r, missing = 0;
	FILE *maps;
	int mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", kv->pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", kv->pid);
	maps = fopen(path, "re");
	if (!buffer || mem < 0 || !maps)
		return failed(path);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx rw-p %*s %*s 0", &from, &to) != 2)
			continue;
		for (at = from; at < to; at += piece) {
			ssize_t n = pread(mem, buffer, piece + overlap, at);

			if (n <= 0)
				break;
			buffer[n] = 0;
			look_through(kv, buffer, n, at);
		}
	}
	fclose(maps);
	close(mem);
	free(buffer);
	for (r = 0; r < kv->records; r++)
		missing += !kv->at[r];
	if (missing) {
		fprintf(stderr, "kvload: %u of %u records are nowhere in the memory of process %d; was memcached given enough (-m)?\n",
			missing, kv->records, kv->pid);
		return -1;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_weight(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	return x->weight > y->weight ? -1 : x->weight < y->weight;
}

/* The pages under the records, heaviest first; a record's weight is split by its bytes. */
static struct page *weigh(const struct kv *kv, uint32_t *count)
{
	uint32_t per_record = kv->value_bytes / PAGE + 2, n = 0, i, rank;
	struct page *page = calloc((size_t)kv->records * per_record, sizeof(*page));

	for (rank = 0; page && rank < kv->records; rank++) {
		uint64_t at = kv->at[tl_page_of_rank(&kv->dist, rank, 0)], end = at + kv->value_bytes;

		while (at < end) {
			uint64_t next = (at / PAGE + 1) * PAGE, stop = next < end ? next : end;

			page[n].address = at / PAGE * PAGE;
			page[n++].weight = tl_rank_weight(&kv->dist, rank) * (stop - at) / kv->value_bytes;
			at = stop;
		}
	}
	if (!page)
		return NULL;
	qsort(page, n, sizeof(*page), by_address);
	for (i = 1, rank = 0; i < n; i++) {
		if (page[i].address == page[rank].address)
			page[rank].weight += page[i].weight;
		else
			page[++rank] = page[i];
	}
	*count = rank + 1;
	qsort(page, *count, sizeof(*page), by_weight);
	return page;
}

/* Asks for n records at once and reads all answers. */
static int get_batch(struct kv *kv, struct tl_cursor *cursor, uint32_t n)
{
	char ask[64 * 16], head[64];
	uint32_t record[64], i;
	size_t length = 0;

	for (i = 0; i < n; i++) {
		record[i] = tl_page_of_rank(&kv->dist, tl_next_rank(&kv->dist, cursor), 0);
		length += sprintf(ask + length, "get k%07u\r\n", record[i]);
	}
	if (send_all(kv->fd, ask, length))
		return -1;
	for (i = 0; i < n; i++) {
		int k = snprintf(head, sizeof(head), "VALUE k%07u 0 %u\r\n", record[i], kv->value_bytes);

		if (receive(kv->fd, kv->value, k + kv->value_bytes + 7))
			return -1;
		kv->failed += memcmp(kv->value, head, k) != 0 ||
			      strtoul(kv->value + k + sizeof(MAGIC) - 1, NULL, 10) != record[i];
	}
	return 0;
}

static void *load_main(void *arg)
{
	struct kv *kv = arg;
	struct tl_thread_slot *slot = &kv->ctl.slot[0][0];
	uint64_t start_ns = kv->ctl.start_ns, late_ns = (uint64_t)(kv->opt.late_ms * 1e6), k;
	uint32_t batch = (uint32_t)(kv->opt.rate * BATCH_S);
	struct tl_cursor cursor;
	double period_ns;

	batch = batch < 1 ? 1 : batch > 64 ? 64 : batch;
	period_ns = batch / kv->opt.rate * TL_NS_PER_S;
	tl_cursor_init(&cursor, &kv->dist, 0, 1);
	for (k = 0; !kv->ctl.stop; k++) {
		uint64_t due_ns = start_ns + (uint64_t)(k * period_ns), now = now_ns();

		if (now < due_ns)
			sleep_until(due_ns);
		else if (now - due_ns > late_ns)
			slot->late_batches++;
		if (now > due_ns + TL_BACKLOG_NS) {
			slot->dropped_ns += now - due_ns;
			start_ns += now - due_ns;
		}
		if (get_batch(kv, &cursor, batch)) {
			kv->failed++;
			break;
		}
		slot->accesses += batch * (kv->value_bytes / LINE_BYTES);
		slot->batches++;
	}
	slot->done = true;
	return NULL;
}

static int watch(struct kv *kv, struct tl_run *run)
{
	uint64_t start_ns, step_ns = kv->opt.report_ms * 1000000ull, n;
	pthread_t thread;
	int err;

	if (kv->ready) {
		FILE *f = fopen(kv->ready, "we");

		if (!f || fprintf(f, "%d\n", kv->pid) < 0 || fclose(f))
			return failed(kv->ready);
	}
	while (kv->wait && access(kv->wait, F_OK))
		sleep_until(now_ns() + 10000000);
	tl_print_start(run);
	if (tl_measure_init(run, 0.0))
		return -1;
	start_ns = now_ns();
	kv->ctl.start_ns = start_ns;
	errno = pthread_create(&thread, NULL, load_main, kv);
	if (errno)
		return failed("starting a thread");
	for (n = 1, err = 0; !err && !kv->ctl.slot[0][0].done; n++) {
		sleep_until(start_ns + n * step_ns);
		err = tl_measure(run, (now_ns() - start_ns) / (double)TL_NS_PER_S);
		if (!err)
			tl_print_sample(run, &run->sample[run->samples - 1]);
		while (start_ns + (n + 1) * step_ns < now_ns())
			n++;
		if (now_ns() - start_ns >= kv->opt.seconds * TL_NS_PER_S)
			break;
	}
	kv->ctl.stop = true;
	pthread_join(thread, NULL);
	if (kv->failed)
		fprintf(stderr, "kvload: %u gets were not answered with their record\n", kv->failed);
	return err || kv->failed ? -1 : tl_measure_finish(run);
}

enum { O_SOCKET = 256, O_PID, O_RECORDS, O_BYTES, O_RATE, O_SECONDS, O_SEED, O_JSON, O_READY,
	O_WAIT, O_FAST_NS, O_SLOW_NS };

static const struct argp_option options[] = {
	{ "socket", O_SOCKET, "PATH", 0, "memcached's Unix socket", 0 },
	{ "pid", O_PID, "PID", 0, "memcached's process", 0 },
	{ "records", O_RECORDS, "N", 0, "records to store (default 24000)", 0 },
	{ "value-bytes", O_BYTES, "N", 0, "length of a value (default 4000)", 0 },
	{ "rate", O_RATE, "N", 0, "gets per second (default 3000)", 0 },
	{ "seconds", O_SECONDS, "S", 0, "length of the run (default 60)", 0 },
	{ "seed", O_SEED, "N", 0, "same seed, same popularity and same gets (default 1)", 0 },
	{ "json", O_JSON, "FILE", 0, "write samples and totals", 0 },
	{ "ready-file", O_READY, "FILE", 0, "create FILE once all records are stored", 0 },
	{ "wait-file", O_WAIT, "FILE", 0, "make no get before FILE exists", 0 },
	{ "fast-ns", O_FAST_NS, "N", 0, "modelled latency of fast memory (default 100)", 0 },
	{ "slow-ns", O_SLOW_NS, "N", 0, "modelled latency of slow memory (default 250)", 0 },
	{ "quiet", 'q', NULL, 0, "no table", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct kv *kv = state->input;

	switch (key) {
	case O_SOCKET: kv->socket = arg; return 0;
	case O_PID: kv->pid = parse_number(state, "--pid", arg, 1, 1 << 22); return 0;
	case O_RECORDS: kv->records = parse_number(state, "--records", arg, 1, MAX_RECORDS); return 0;
	case O_BYTES: kv->value_bytes = parse_number(state, "--value-bytes", arg, 64, 65536); return 0;
	case O_RATE: kv->opt.rate = parse_number(state, "--rate", arg, 1, 1e6); return 0;
	case O_SECONDS: kv->opt.seconds = parse_number(state, "--seconds", arg, 1, 1e6); return 0;
	case O_SEED: kv->opt.seed = parse_number(state, "--seed", arg, 0, 9007199254740992.0); return 0;
	case O_JSON: kv->opt.json = arg; return 0;
	case O_READY: kv->ready = arg; return 0;
	case O_WAIT: kv->wait = arg; return 0;
	case O_FAST_NS: kv->opt.fast_ns = parse_number(state, "--fast-ns", arg, 0, 1e9); return 0;
	case O_SLOW_NS: kv->opt.slow_ns = parse_number(state, "--slow-ns", arg, 0, 1e9); return 0;
	case 'q': kv->opt.quiet = true; return 0;
	case ARGP_KEY_END:
		if (!kv->socket || !kv->pid)
			argp_error(state, "--socket and --pid are needed");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* What tierload's reports want to know of a worker, for pages in an order of our own. */
static int describe(struct kv *kv, struct tl_worker *w)
{
	uint32_t pages = 0, i;
	struct page *page = weigh(kv, &pages);
	uint32_t *order = calloc(pages, sizeof(*order));

	w->address = calloc(pages, sizeof(*w->address));
	w->page_weight = calloc(pages, sizeof(*w->page_weight));
	if (!page || !order || !w->address || !w->page_weight)
		return failed("memory for the page list");
	for (i = 0; i < pages; i++) {
		w->address[i] = (const void *)(uintptr_t)page[i].address;
		w->page_weight[i] = page[i].weight;
		order[i] = i;
	}
	free(page);
	w->dist = (struct tl_dist){ .shape = { .kind = TL_STREAM, .pages = pages, .unit_pages = 1 },
				    .units = pages, .unit_at = order };
	w->share = 1.0;
	w->pid = kv->pid;
	kv->opt.pages = pages;
	return 0;
}

int main(int argc, char **argv)
{
	static struct kv kv = {
		.records = 24000, .value_bytes = 4000,
		.opt = { .workload = "memcached", .kind = TL_ZIPF, .theta = 0.99, .rate = 3000,
			 .seconds = 60, .seed = 1, .threads = 1, .report_ms = 1000, .late_ms = 100,
			 .hot_share = 0.9, .unit_pages = 1, .scatter = true, .place = TL_PLACE_DEFAULT,
			 .fast_ns = 100, .slow_ns = 250, .migrate_ns = 3000, .fault_ns = 1000 },
	};
	static const char doc[] = "Zipf-distributed gets from a memcached, and where its memory lies.";
	struct argp argp = { options, parse, NULL, doc, NULL, NULL, NULL };
	static struct tl_worker worker;
	struct tl_nodes nodes;
	struct tl_run run = { .opt = &kv.opt, .nodes = &nodes, .worker = &worker, .workers = 1,
			      .ctl = &kv.ctl };
	struct tl_shape shape;
	uint64_t fast, cache;
	int err;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &kv);
	if (tl_find_nodes(&nodes) || !nodes.slow) {
		fprintf(stderr, "kvload: this machine has no node with memory and without CPUs\n");
		return 3;
	}
	shape = (struct tl_shape){ .kind = TL_ZIPF, .pages = kv.records, .unit_pages = 1,
				   .theta = kv.opt.theta, .scatter = true, .seed = kv.opt.seed };
	kv.value = malloc(kv.value_bytes + 128);
	kv.at = calloc(kv.records, sizeof(*kv.at));
	if (!kv.value || !kv.at || tl_dist_init(&kv.dist, &shape, malloc(tl_dist_bytes(&shape))))
		return failed("memory for the tables") ? 1 : 0;
	if (tl_free_pages(nodes.fast, &fast, &cache) || dial(&kv) || store(&kv) ||
	    find_records(&kv) || describe(&kv, &worker))
		return 1;
	run.fast_capacity_pages = fast;
	err = watch(&kv, &run);
	if (!err) {
		tl_print_totals(&run);
		err = kv.opt.json ? tl_write_json(&run) : 0;
	}
	return err ? 1 : 0;
}
