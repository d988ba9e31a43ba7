// SPDX-License-Identifier: GPL-2.0
/* doctor: processes that may not use fast memory at all. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* numa_maps walks page tables: do not do that to a busy machine for long. */
#define BUDGET_NS	2000000000ULL
#define MAX_NAMED	5

struct pinned {
	unsigned int nr;	/* processes */
	char names[160];	/* the first few: "COMM (PID)" */
};

static void name(struct pinned *p, unsigned int pid)
{
	char comm[32];
	size_t at = strlen(p->names);

	if (p->nr++ >= MAX_NAMED || sys_read(comm, sizeof(comm), "/proc/%u/comm", pid))
		return;
	snprintf(p->names + at, sizeof(p->names) - at, "%s%s (%u)", at ? ", " : "", comm, pid);
}

/* Does a VMA with pages have a policy that binds it to slow nodes only? */
static bool bound_to_slow(unsigned int pid, __u64 fast)
{
	char path[64], line[4096];
	bool bound = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/numa_maps", pid);
	f = fopen(path, "re");
	while (f && !bound && fgets(line, sizeof(line), f)) {
		char *policy = strchr(line, ' ');

		/* "bind:1", "bind=static:1" */
		if (!policy || strncmp(policy + 1, "bind", 4) || !strstr(line, " N"))
			continue;
		policy = strchr(policy + 1, ':');
		bound = policy && !(sys_parse_list(policy + 1) & fast);
	}
	if (f)
		fclose(f);
	return bound;
}

static void report(struct doctor *d, const struct pinned *p, const char *id, const char *by,
		   const char *remedy)
{
	struct finding *f;

	if (!p->nr)
		return;
	f = doctor_add(d, id, SEV_WARNING);
	SAY(f->finding, "%u process(es) may not use fast memory, by %s", p->nr, by);
	SAY(f->evidence, "%s%s", p->names, p->nr > MAX_NAMED ? ", .." : "");
	SAY(f->consequence, "their pages stay on the slow nodes, however hot");
	SAY(f->remedy, "%s", remedy);
}

void doctor_check_tasks(struct doctor *d)
{
	__u64 fast = d->env.top_nodes, until_ns = now_ns() + BUDGET_NS;
	struct pinned by_cpuset = { 0 }, by_policy = { 0 };
	unsigned int skipped = 0;
	struct dirent *e;
	DIR *dir;

	/* With one tier there is no slow node to be bound to. */
	if (!(d->env.memory_nodes & ~fast))
		return;
	dir = opendir("/proc");
	if (!dir)
		return;
	d->checks += 2;
	while ((e = readdir(dir))) {
		unsigned int pid = atoi(e->d_name);

		if (!isdigit((unsigned char)*e->d_name))
			continue;
		if (!(sys_mems_allowed(pid, NULL, 0) & fast))
			name(&by_cpuset, pid);
		else if (!d->full && now_ns() > until_ns)
			skipped++;
		else if (bound_to_slow(pid, fast))
			name(&by_policy, pid);
	}
	closedir(dir);
	report(d, &by_cpuset, "cpuset_slow", "cpuset",
	       "add a fast node to cpuset.mems of their cgroup");
	report(d, &by_policy, "bound_slow", "memory policy (MPOL_BIND)",
	       "start them without numactl --membind on slow nodes");
	if (skipped) {
		struct finding *f = doctor_add(d, "tasks_skipped", SEV_NOTE);

		SAY(f->finding, "%u processes were not looked at", skipped);
		SAY(f->evidence, "reading /proc/PID/numa_maps took 2 s");
		SAY(f->consequence, "one of them may be bound to slow nodes");
		SAY(f->remedy, "tierctl doctor --full");
	}
}
