// SPDX-License-Identifier: GPL-2.0
/*
 * explain: placement from numa_maps, access rights from smaps, and from both by
 * the kernel's own rules why a mapping is never scanned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"

static const struct {
	const char *name, *text;
} obstacles[OBSTACLE_NR] = {
	[OBSTACLE_NONE] = { "none", "scanned: the policy decides" },
	[OBSTACLE_HUGETLB] = { "hugetlb", "hugetlb pages: the scanner leaves them alone" },
	[OBSTACLE_DEVICE] = { "device", "device memory: cannot be moved" },
	[OBSTACLE_POLICY] = { "memory_policy",
		"memory policy without NUMA balancing: the scanner leaves it alone" },
	[OBSTACLE_BOUND] = { "bound_slow", "memory policy allows slow nodes only" },
	[OBSTACLE_READ_ONLY_FILE] = { "read_only_file",
		"read-only file mapping: the scanner leaves it alone" },
	[OBSTACLE_NO_ACCESS] = { "no_access", "no access rights: nobody can touch it" },
};

const char *obstacle_name(enum obstacle o)
{
	return obstacles[o].name;
}

const char *obstacle_text(enum obstacle o)
{
	return obstacles[o].text;
}

static struct vma *add(struct maps *maps)
{
	struct vma *more;

	if (!(maps->nr & (maps->nr - 1))) {	/* grows at powers of two */
		more = realloc(maps->vma, (maps->nr ? 2 * maps->nr : 1) * sizeof(*more));
		if (!more)
			return NULL;
		maps->vma = more;
	}
	memset(&maps->vma[maps->nr], 0, sizeof(*more));
	return &maps->vma[maps->nr++];
}

static void copy_text(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

/* A long path is best known by its end. */
static void set_what(struct vma *v, const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(v->what))
		path += len - sizeof(v->what) + 1;
	copy_text(v->what, sizeof(v->what), path, strlen(path));
	v->file = true;
}

/* "7f12 bind:1 file=/x anon=3 mapmax=2 N0=1 N1=2 kernelpagesize_kB=4" */
static void parse_numa_line(struct vma *v, char *line, __u64 fast)
{
	__u64 pages[SYS_MAX_NODES] = { 0 }, page_kib = 4;
	char *save, *word = strtok_r(line, " \n", &save);

	v->start = strtoull(word, NULL, 16);
	word = strtok_r(NULL, " \n", &save);
	copy_text(v->policy, sizeof(v->policy), word ? word : "", word ? strlen(word) : 0);
	strcpy(v->what, "anonymous");
	while ((word = strtok_r(NULL, " \n", &save))) {
		unsigned long long value;
		unsigned int nid;

		if (sscanf(word, "N%u=%llu", &nid, &value) == 2 && nid < SYS_MAX_NODES)
			pages[nid] = value;
		else if (sscanf(word, "kernelpagesize_kB=%llu", &value) == 1)
			page_kib = value;
		else if (sscanf(word, "mapmax=%llu", &value) == 1)
			v->mapmax = value;
		else if (!strncmp(word, "file=", 5))
			set_what(v, word + 5);
		else if (!strcmp(word, "heap") || !strcmp(word, "stack"))
			copy_text(v->what, sizeof(v->what), word, strlen(word));
		else if (!strcmp(word, "huge"))
			v->obstacle = OBSTACLE_HUGETLB;
	}
	for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++) {
		v->bytes[nid] = pages[nid] * page_kib * 1024;
		*(fast >> nid & 1 ? &v->fast_bytes : &v->slow_bytes) += v->bytes[nid];
	}
}

static int read_numa_maps(unsigned int pid, __u64 fast, struct maps *maps)
{
	char path[64], *line = NULL;
	size_t size = 0;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/numa_maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!err && getline(&line, &size, f) > 0) {
		struct vma *v = add(maps);

		if (v)
			parse_numa_line(v, line, fast);
		else
			err = -ENOMEM;
	}
	/* Another user's process: the open works, the read does not. */
	if (!err && ferror(f))
		err = errno ? -errno : -EIO;
	free(line);
	fclose(f);
	return err;
}

static struct vma *find(struct maps *maps, __u64 start)
{
	for (unsigned int i = 0; i < maps->nr; i++)
		if (maps->vma[i].start == start)
			return &maps->vma[i];
	return NULL;
}

bool vma_shares_cow(const struct vma *v)
{
	return v->mapmax > 1 && !v->shared;
}

/* As in the kernel's task_numa_work() and vma_policy_mof(). */
static void judge(struct vma *v, const char *flags, __u64 fast)
{
	bool read = strstr(flags, " rd"), write = strstr(flags, " wr"), exec = strstr(flags, " ex");
	const char *nodes = strchr(v->policy, ':');

	v->shared = strstr(flags, " sh");
	v->locked = strstr(flags, " lo");
	if (v->obstacle)
		return;
	if (strstr(flags, " ht"))
		v->obstacle = OBSTACLE_HUGETLB;
	else if (strstr(flags, " io") || strstr(flags, " pf") || strstr(flags, " mm"))
		v->obstacle = OBSTACLE_DEVICE;
	else if (!strncmp(v->policy, "bind", 4) && nodes && !(sys_parse_list(nodes + 1) & fast))
		v->obstacle = OBSTACLE_BOUND;
	else if (strcmp(v->policy, "default") && !strstr(v->policy, "balancing"))
		v->obstacle = OBSTACLE_POLICY;
	else if (v->file && read && !write)
		v->obstacle = OBSTACLE_READ_ONLY_FILE;
	else if (!read && !write && !exec)
		v->obstacle = OBSTACLE_NO_ACCESS;
}

static void read_smaps(unsigned int pid, __u64 fast, struct maps *maps)
{
	char path[64], *line = NULL, flags[256];
	struct vma *v = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/smaps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		unsigned long long start, end;

		if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
			v = find(maps, start);
			if (v)
				v->end = end;
		} else if (v && !strncmp(line, "VmFlags:", 8)) {
			/* each flag then has a space before it */
			snprintf(flags, sizeof(flags), " %.200s", line + 8);
			judge(v, flags, fast);
		}
	}
	free(line);
	if (f)
		fclose(f);
}

int maps_read(unsigned int pid, __u64 fast, struct maps *maps)
{
	int err;

	memset(maps, 0, sizeof(*maps));
	err = read_numa_maps(pid, fast, maps);
	if (err) {
		maps_free(maps);
		return err;
	}
	read_smaps(pid, fast, maps);
	return 0;
}

void maps_free(struct maps *maps)
{
	free(maps->vma);
	maps->vma = NULL;
	maps->nr = 0;
}
