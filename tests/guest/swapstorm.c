// SPDX-License-Identifier: GPL-2.0
/*
 * swapstorm LINK_PIN COUNT COMMAND...: swap two policies COUNT times, as fast as
 * the kernel does it.
 *
 * Takes hold of the policy that the pinned link has in force, runs COMMAND (which
 * swaps to another one, say `tierctl swap mru`), takes hold of that one too, and
 * then updates the link between the two with BPF_F_REPLACE, each time comparing
 * with the policy that must be in force. Ends with COMMAND's policy in force, so
 * that what COMMAND pinned is true. Prints swaps and microseconds per swap.
 *
 * tierctl itself opens, relocates and verifies an object for each swap, which takes
 * seconds under emulation: a thousand of those would test the emulator.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Debian 12's <linux/bpf.h> is older than struct_ops links. This is the head of
 * struct bpf_link_info as such a link fills it; in link_update, maps have the
 * places of programs.
 */
struct link_info {
	__u32 type;
	__u32 id;
	__u32 prog_id;
	__u32 pad;
	__u32 map_id;
	__u32 rest[11];
};

static int die(const char *what)
{
	fprintf(stderr, "swapstorm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* The struct_ops map that the link has in force, held by a descriptor. */
static int map_in_force(int link)
{
	struct link_info info = { 0 };
	union bpf_attr attr = { 0 };
	int fd;

	attr.info.bpf_fd = link;
	attr.info.info_len = sizeof(info);
	attr.info.info = (unsigned long)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		die("asking the link for its map");
	memset(&attr, 0, sizeof(attr));
	attr.map_id = info.map_id;
	fd = bpf(BPF_MAP_GET_FD_BY_ID, &attr);
	return fd < 0 ? die("getting hold of the policy's map") : fd;
}

static void run(char **command)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		execvp(command[0], command);
		die(command[0]);
	}
	if (waitpid(child, &status, 0) != child)
		die("wait");
	if (status) {
		fprintf(stderr, "swapstorm: %s failed\n", command[0]);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { 0 };
	struct timespec start, end;
	int link, map[2];
	long count, i;

	if (argc < 4 || (count = strtol(argv[2], NULL, 10)) < 2 || count % 2) {
		fprintf(stderr, "usage: swapstorm LINK_PIN EVEN_COUNT COMMAND...\n");
		return 2;
	}
	attr.pathname = (unsigned long)argv[1];
	link = bpf(BPF_OBJ_GET, &attr);
	if (link < 0)
		die(argv[1]);
	map[0] = map_in_force(link);
	run(argv + 3);
	map[1] = map_in_force(link);

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < count; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.link_update.link_fd = link;
		attr.link_update.new_prog_fd = map[i % 2];
		attr.link_update.old_prog_fd = map[!(i % 2)];
		attr.link_update.flags = BPF_F_REPLACE;
		if (bpf(BPF_LINK_UPDATE, &attr)) {
			fprintf(stderr, "swapstorm: swap %ld of %ld: %s\n", i + 1, count,
				strerror(errno));
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%ld swaps, %.0f us each\n", count,
	       ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / 1e3 / count);
	return 0;
}
