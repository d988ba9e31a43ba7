// SPDX-License-Identifier: GPL-2.0
/*
 * The journal: what load is about to change, on disk before it is changed, so
 * that whoever comes after a killed process can put it back.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "internal.h"

#define JOURNAL_VERSION	1

static const char *const phase_names[] = {
	[TIER_PHASE_NONE] = "none",
	[TIER_PHASE_LOADING] = "loading",
	[TIER_PHASE_ACTIVE] = "active",
	[TIER_PHASE_UNLOADING] = "unloading",
};

static void boot_id(char *buf, size_t size)
{
	if (tier_read_text("/proc/sys/kernel/random/boot_id", buf, size) < 0)
		buf[0] = '\0';
}

int tier_journal_knob(struct tier_journal *journal, const char *path, const char *saved,
		      const char *set)
{
	struct tier_knob *knob = &journal->knobs[journal->nr_knobs];

	if (journal->nr_knobs == ARRAY_SIZE(journal->knobs))
		return -ENOSPC;
	journal->nr_knobs++;
	tier_copy(knob->path, sizeof(knob->path), path);
	tier_copy(knob->saved, sizeof(knob->saved), saved);
	tier_copy(knob->set, sizeof(knob->set), set);
	return 0;
}

struct tier_record *tier_journal_record(struct tier_journal *journal, __u32 map_id,
					__u32 keep)
{
	struct tier_record *slot = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(journal->records); i++) {
		struct tier_record *record = &journal->records[i];

		if (keep && record->map_id == keep)
			continue;
		memset(record, 0, sizeof(*record));
		if (!slot)
			slot = record;
	}
	/* Never both slots: ids are unique. */
	slot->map_id = map_id;
	return slot;
}

const struct tier_record *tier_journal_find(const struct tier_journal *journal, __u32 map_id)
{
	for (size_t i = 0; map_id && i < ARRAY_SIZE(journal->records); i++)
		if (journal->records[i].map_id == map_id)
			return &journal->records[i];
	return NULL;
}

/* ---- to JSON ---- */

static void add_string(struct json_object *obj, const char *key, const char *value)
{
	json_object_object_add(obj, key, json_object_new_string(value));
}

static void add_u64(struct json_object *obj, const char *key, __u64 value)
{
	json_object_object_add(obj, key, json_object_new_uint64(value));
}

static struct json_object *record_to_json(const struct tier_record *record)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *params = json_object_new_object();

	add_u64(obj, "map_id", record->map_id);
	add_u64(obj, "flags", record->flags);
	add_string(obj, "policy", record->policy);
	add_string(obj, "object", record->object);
	for (unsigned int i = 0; i < record->nr_params; i++)
		add_u64(params, record->params[i].name, record->params[i].def);
	json_object_object_add(obj, "defaults", params);
	return obj;
}

static struct json_object *to_json(const struct tier_journal *journal)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *knobs = json_object_new_array();
	struct json_object *base = json_object_new_array();
	struct json_object *records = json_object_new_array();
	struct json_object *observer = json_object_new_array();
	char id[64];

	boot_id(id, sizeof(id));
	add_u64(obj, "version", JOURNAL_VERSION);
	add_string(obj, "boot_id", id);
	add_string(obj, "phase", phase_names[journal->phase]);
	json_object_object_add(obj, "module_inserted",
			       json_object_new_boolean(journal->module_inserted));
	json_object_object_add(obj, "bpffs_mounted",
			       json_object_new_boolean(journal->bpffs_mounted));
	for (unsigned int i = 0; i < journal->nr_knobs; i++) {
		struct json_object *knob = json_object_new_object();

		add_string(knob, "path", journal->knobs[i].path);
		add_string(knob, "saved", journal->knobs[i].saved);
		add_string(knob, "set", journal->knobs[i].set);
		json_object_array_add(knobs, knob);
	}
	for (unsigned int i = 0; i < TIER_NR_EV; i++)
		json_object_array_add(base, json_object_new_uint64(journal->module_base[i]));
	for (size_t i = 0; i < ARRAY_SIZE(journal->records); i++)
		if (journal->records[i].map_id)
			json_object_array_add(records, record_to_json(&journal->records[i]));
	for (unsigned int i = 0; i < journal->observer.nr; i++)
		json_object_array_add(observer, json_object_new_uint64(journal->observer.id[i]));
	json_object_object_add(obj, "observer_progs", observer);
	json_object_object_add(obj, "knobs", knobs);
	json_object_object_add(obj, "module_base", base);
	json_object_object_add(obj, "records", records);
	return obj;
}

static int write_all(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= n;
	}
	return fsync(fd) ? -errno : 0;
}

/* New file, then rename: a reader sees the old journal or the new one, never half of one. */
int tier_journal_write(struct tier_ctx *ctx, const struct tier_journal *journal)
{
	char path[96], next[96];
	struct json_object *obj;
	int fd, dir, err;

	err = tier_run_dir(ctx);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/state.json", ctx->run_dir);
	snprintf(next, sizeof(next), "%s/state.json.new", ctx->run_dir);
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	obj = to_json(journal);
	err = write_all(fd, json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PRETTY));
	json_object_put(obj);
	close(fd);
	if (!err && rename(next, path))
		err = -errno;
	dir = err ? -1 : open(ctx->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		fsync(dir);
		close(dir);
	}
out:
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "Make room on the file system of /run, and see that it is "
				 "writable.",
				 "write the state file %s: %s", path, strerror(-err));
	return 0;
}

/*
 * What a writer that was killed before its rename left. Whether there is any may be
 * asked under the shared lock, for then nobody writes; to @remove takes the exclusive one.
 */
bool tier_journal_litter(struct tier_ctx *ctx, bool remove)
{
	static const char *const names[] = { "state.json.new", "base.new", "tenures.new" };
	bool found = false;
	char path[96];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", ctx->run_dir, names[i]);
		found |= remove ? !unlink(path) : !access(path, F_OK);
	}
	return found;
}

int tier_journal_remove(struct tier_ctx *ctx)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/state.json", ctx->run_dir);
	if (unlink(path) && errno != ENOENT)
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL,
				 "remove the state file %s: %s", path, strerror(errno));
	return 0;
}

/* ---- from JSON ---- */

static const char *get_string(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) &&
	       json_object_is_type(value, json_type_string) ?
	       json_object_get_string(value) : "";
}

static __u64 get_u64(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) ? json_object_get_uint64(value) : 0;
}

static bool get_bool(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) && json_object_get_boolean(value);
}

static struct json_object *get_array(struct json_object *obj, const char *key, size_t max,
				     size_t *nr)
{
	struct json_object *value = NULL;

	*nr = 0;
	if (!json_object_object_get_ex(obj, key, &value) ||
	    !json_object_is_type(value, json_type_array))
		return NULL;
	*nr = json_object_array_length(value);
	if (*nr > max)
		*nr = max;
	return value;
}

static void record_from_json(struct json_object *obj, struct tier_record *record)
{
	struct json_object *params;

	record->map_id = get_u64(obj, "map_id");
	record->flags = get_u64(obj, "flags");
	tier_copy(record->policy, sizeof(record->policy), get_string(obj, "policy"));
	tier_copy(record->object, sizeof(record->object), get_string(obj, "object"));
	if (!json_object_object_get_ex(obj, "defaults", &params) ||
	    !json_object_is_type(params, json_type_object))
		return;
	json_object_object_foreach(params, name, value) {
		if (record->nr_params == TIER_MAX_RECORD_PARAMS)
			break;
		tier_copy(record->params[record->nr_params].name,
			  sizeof(record->params[0].name), name);
		record->params[record->nr_params++].def = json_object_get_uint64(value);
	}
}

static int from_json(struct json_object *obj, struct tier_journal *journal)
{
	const char *phase = get_string(obj, "phase");
	struct json_object *array;
	char id[64];
	size_t nr;

	if (get_u64(obj, "version") != JOURNAL_VERSION)
		return -EPROTO;
	boot_id(id, sizeof(id));
	if (strcmp(get_string(obj, "boot_id"), id))
		return -ENOENT;
	for (unsigned int i = TIER_PHASE_LOADING; i < ARRAY_SIZE(phase_names); i++)
		if (!strcmp(phase, phase_names[i]))
			journal->phase = i;
	if (!journal->phase)
		return -EBADMSG;
	journal->module_inserted = get_bool(obj, "module_inserted");
	journal->bpffs_mounted = get_bool(obj, "bpffs_mounted");
	array = get_array(obj, "knobs", ARRAY_SIZE(journal->knobs), &nr);
	for (size_t i = 0; i < nr; i++) {
		struct json_object *knob = json_object_array_get_idx(array, i);

		tier_journal_knob(journal, get_string(knob, "path"), get_string(knob, "saved"),
				  get_string(knob, "set"));
	}
	array = get_array(obj, "module_base", TIER_NR_EV, &nr);
	for (size_t i = 0; i < nr; i++)
		journal->module_base[i] =
			json_object_get_uint64(json_object_array_get_idx(array, i));
	array = get_array(obj, "observer_progs", TIER_MAX_PROGS, &nr);
	for (size_t i = 0; i < nr; i++)
		journal->observer.id[journal->observer.nr++] =
			json_object_get_uint64(json_object_array_get_idx(array, i));
	array = get_array(obj, "records", ARRAY_SIZE(journal->records), &nr);
	for (size_t i = 0; i < nr; i++)
		record_from_json(json_object_array_get_idx(array, i), &journal->records[i]);
	return 0;
}

int tier_journal_read(struct tier_ctx *ctx, struct tier_journal *journal)
{
	char path[96], *text;
	struct json_object *obj;
	int err;

	memset(journal, 0, sizeof(*journal));
	snprintf(path, sizeof(path), "%s/state.json", ctx->run_dir);
	text = malloc(65536);
	if (!text)
		return -ENOMEM;
	err = tier_read_text(path, text, 65536);
	if (err < 0) {
		free(text);
		if (err == -ENOENT)
			return err;
		return tier_fail(ctx, err == -EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_FAILED,
				 err, NULL, "read the state file %s: %s", path, strerror(-err));
	}
	obj = json_tokener_parse(text);
	free(text);
	err = obj ? from_json(obj, journal) : -EBADMSG;
	json_object_put(obj);
	if (err && err != -ENOENT)
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "It was written by another tierctl, or damaged: move it away, then "
				 "tierctl unload or clean; the knobs it saved are in it.",
				 "read the state file %s: %s", path,
				 err == -EPROTO ? "version unknown" : "not understood");
	return err;
}
