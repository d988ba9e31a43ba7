// SPDX-License-Identifier: GPL-2.0
/* tierctl dump: one archive for a bug report. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sysinfo.h"
#include "tierctl.h"

extern char **environ;

enum { OUTPUT, KERNEL_LOG };

static const struct opt opts[] = {
	[OUTPUT] = { "output", 'o', OPT_TEXT, "FILE",
		"archive to write (default tierctl-dump-DATE.tar.gz here)", 0, 0, NULL },
	[KERNEL_LOG] = { "kernel-log", 'k', OPT_FLAG, NULL,
		"with the kernel's log, which may hold addresses and other people's names", 0, 0, NULL },
	{ 0 },
};

/* What goes in: the output of a command, tierctl's own unless it has a name. */
static const struct piece {
	const char *file;
	const char *argv[5];	/* argv[0] NULL: tierctl itself */
} pieces[] = {
	{ "version.json", { NULL, "--json", "version", "--features" } },
	{ "status.json", { NULL, "--json", "status" } },
	{ "stats.json", { NULL, "--json", "stats" } },
	{ "hist.json", { NULL, "--json", "hist" } },
	{ "params.json", { NULL, "--json", "get" } },
	{ "config.json", { NULL, "--json", "config" } },
	{ "topo.json", { NULL, "--json", "topo" } },
	{ "doctor.json", { NULL, "--json", "doctor" } },
	{ "policies.json", { NULL, "--json", "list" } },
};

/* Files that are copied; absent ones are no failure. */
static const struct {
	const char *file, *path;
	const char *prefixes[6];	/* lines to keep; none: all */
	const char *drop;		/* lines to leave out: they hold addresses */
	bool mask;			/* addresses within lines */
} copies[] = {
	{ "cmdline.txt", "/proc/cmdline", { NULL }, NULL, true },
	{ "vmstat.txt", "/proc/vmstat", { "numa_", "pgpromote", "pgdemote", "pgmigrate", "thp_", NULL },
	  NULL, false },
	{ "zoneinfo.txt", "/proc/zoneinfo", { NULL }, "start_pfn", false },
	{ "module-counters.txt", "/sys/kernel/tier_policy/counters", { NULL }, NULL, false },
	{ "module-exit.txt", "/sys/kernel/tier_policy/exit", { NULL }, NULL, false },
};

static const char *const config_prefixes[] = {
	"CONFIG_NUMA", "CONFIG_BPF", "CONFIG_DEBUG_INFO_BTF", "CONFIG_FUNCTION_TRACER",
	"CONFIG_DYNAMIC_FTRACE", "CONFIG_LRU_GEN", "CONFIG_TRANSPARENT", "CONFIG_MIGRATION",
	"CONFIG_MODULE_SIG", NULL
};

/* stdout of a command into a file. 0, a negative errno, or its exit status. */
static int run_into(const char *dir, const char *file, const char *const *argv)
{
	const char *list[6] = { argv[0] ? argv[0] : "/proc/self/exe" };
	posix_spawn_file_actions_t actions;
	char path[512];
	int err, status;
	pid_t pid;

	for (unsigned int i = 1; i < 5; i++)
		list[i] = argv[i];
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = -posix_spawnp(&pid, list[0], &actions, NULL, (char *const *)list, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static bool wanted(const char *line, const char *const *prefixes)
{
	if (!prefixes[0])
		return true;
	for (; *prefixes; prefixes++)
		if (!strncmp(line, *prefixes, strlen(*prefixes)))
			return true;
	return false;
}

/* Where memory lies: memmap=8G!16G, crashkernel=64M@16M, earlycon=uart,mmio32,0xfe0c9000 */
static void mask_addresses(char *line)
{
	for (char *c = line; *c; c++) {
		size_t len = 0;

		if (c[0] == '0' && c[1] == 'x') {
			len = strspn(c + 2, "0123456789abcdefABCDEF");
			if (len >= 6)
				memset(c + 2, 'x', len);
		} else if (strchr("@$!#", *c) && isdigit((unsigned char)c[1])) {
			len = strcspn(c + 1, " ,\n");
			memset(c + 1, 'x', len);
		}
		c += len;
	}
}

static void copy(const char *dir, const char *file, const char *path, const char *const *prefixes,
		 const char *drop, bool mask)
{
	char line[4096], target[512];
	FILE *from = fopen(path, "re"), *to;

	if (!from)
		return;
	snprintf(target, sizeof(target), "%s/%s", dir, file);
	to = fopen(target, "we");
	while (to && fgets(line, sizeof(line), from)) {
		if (mask)
			mask_addresses(line);
		if (wanted(line, prefixes) && !(drop && strstr(line, drop)))
			fputs(line, to);
	}
	if (to)
		fclose(to);
	fclose(from);
}

static void collect(const char *dir, bool kernel_log)
{
	static const char *const dmesg[5] = { "dmesg" };
	struct utsname uts;
	char path[128];

	/* A command that fails has said why in its JSON: that is what we want to know. */
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		run_into(dir, pieces[i].file, pieces[i].argv);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		copy(dir, copies[i].file, copies[i].path, copies[i].prefixes,
		     copies[i].drop, copies[i].mask);
	if (!uname(&uts)) {
		snprintf(path, sizeof(path), "/boot/config-%s", uts.release);
		copy(dir, "kernel-config.txt", path, config_prefixes, NULL, false);
	}
	if (kernel_log)
		run_into(dir, "kernel-log.txt", dmesg);
}

static void remove_dir(const char *dir)
{
	static const char *const more[] = { "kernel-config.txt", "kernel-log.txt" };
	char path[512];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, pieces[i].file);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, copies[i].file);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, more[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* Not yet there, and readable by its owner alone: it tells about the machine. */
static int create_output(const char *output)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int pack(const char *parent, const char *name, const char *output)
{
	const char *argv[] = { "tar", "-C", parent, "-czf", output, name, NULL };
	int err, status;
	pid_t pid;

	err = -posix_spawnp(&pid, "tar", NULL, NULL, (char *const *)argv, environ);
	if (err)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int run(struct tierctl *t, const struct args *args)
{
	char base[] = "/tmp/tierctl-XXXXXX", dir[64], name[64], output[4096];
	time_t now = time(NULL);
	struct tm tm;
	int err;

	localtime_r(&now, &tm);
	strftime(name, sizeof(name), "tierctl-dump-%Y%m%d-%H%M%S", &tm);
	snprintf(output, sizeof(output), "%s.tar.gz", name);
	if (args->opt[OUTPUT].given)
		snprintf(output, sizeof(output), "%s", args->opt[OUTPUT].text);
	err = create_output(output);
	if (err)
		return failure(t, TIER_CLASS_FAILED, "Name another file with --output.",
			       "creating %s: %s", output, strerror(-err));
	if (!mkdtemp(base))
		return failure(t, TIER_CLASS_FAILED, "", "creating a directory in /tmp: %s",
			       strerror(errno));
	snprintf(dir, sizeof(dir), "%.20s/%.40s", base, name);
	err = mkdir(dir, 0700) ? -errno : 0;
	if (!err) {
		collect(dir, args->opt[KERNEL_LOG].given);
		err = pack(base, name, output);
		remove_dir(dir);
	}
	rmdir(base);
	if (err) {
		unlink(output);
		return failure(t, TIER_CLASS_FAILED, "Is the program tar there, and room on the disk?",
			       "packing %s: %s", output, err < 0 ? strerror(-err) : "tar failed");
	}
	out_str(t->out, "archive", output);
	if (!t->json)
		printf("%s\n", output);
	return show(t, NULL);
}

const struct command cmd_dump = {
	.name = "dump",
	.group = "Look",
	.summary = "one archive for a bug report",
	.doc = "Packs what a bug report needs into one archive: version and features, status with the "
	"exit record, the counters and histograms that stats and hist read, parameters, configuration, "
	"doctor's findings, nodes, the kernel's command line, its promotion counters and the lines of "
	"its configuration that matter. What a policy keeps in maps of its own is not in it. No "
	"addresses, unless the kernel's log is asked for, and no contents of memory. Processes are "
	"named where doctor names one, and the one that attached the policy.",
	.examples = "  tierctl dump\n",
	.opts = opts,
	.run = run,
};
