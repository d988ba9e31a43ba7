// SPDX-License-Identifier: GPL-2.0
/* Parameter settings: from words "k=v", or from a status, in memory or saved as JSON. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit.h"

static int add(struct tierctl *t, struct settings *s, const char *word, const char *what)
{
	char *copy, *eq;

	if (s->nr == MAX_SETTINGS)
		return failure(t, TIER_CLASS_USAGE, "", "%s: more than %d settings", what, MAX_SETTINGS);
	copy = strdup(word);
	if (!copy)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	eq = strchr(copy, '=');
	if (!eq || eq == copy || !eq[1]) {
		free(copy);
		return failure(t, TIER_CLASS_USAGE, "Write it as name=value.",
			    "%s: '%.80s' is not of the form name=value", what, word);
	}
	*eq = '\0';
	for (unsigned int i = 0; i < s->nr; i++) {
		if (strcmp(s->set[i].name, copy))
			continue;
		free(copy);
		return failure(t, TIER_CLASS_USAGE, "", "%s: %s is set twice", what, s->set[i].name);
	}
	s->store[s->nr] = copy;
	s->set[s->nr].name = copy;
	s->set[s->nr++].value = eq + 1;
	return TIER_CLASS_OK;
}

int settings_parse(struct tierctl *t, struct settings *s, const char *what,
		   const char *const *words, unsigned int nr)
{
	int code = TIER_CLASS_OK;

	for (unsigned int i = 0; i < nr && !code; i++)
		code = add(t, s, words[i], what);
	return code;
}

void settings_free(struct settings *s)
{
	for (unsigned int i = 0; i < s->nr; i++)
		free(s->store[i]);
	s->nr = 0;
}

int check_trusted(struct tierctl *t, int fd, const char *path)
{
	struct stat st;

	if (geteuid() || getenv("TIERCTL_ALLOW_UNSAFE_FILES"))
		return TIER_CLASS_OK;
	if (!fstat(fd, &st) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return TIER_CLASS_OK;
	return failure(t, TIER_CLASS_PERMISSION, "Run chown root:root and chmod go-w on it.",
		       "read %s: others than root may write it", path);
}

/* ---- a policy with its parameters, as it was in force ---- */

int saved_from_status(struct tierctl *t, struct saved *saved, const struct tier_status *status)
{
	int code = TIER_CLASS_OK;

	memset(saved, 0, sizeof(*saved));
	snprintf(saved->policy, sizeof(saved->policy), "%s", status->policy);
	snprintf(saved->object, sizeof(saved->object), "%s", status->object);
	saved->no_observer = !status->observer;
	for (unsigned int i = 0; i < status->nr_params && !code; i++) {
		char word[128];

		snprintf(word, sizeof(word), "%s=%llu", status->params[i].info.name,
			 status->params[i].value);
		code = add(t, &saved->params, word, "status");
	}
	return code;
}

/* The object's path, when known, is exact; a name may find another file. */
const char *saved_source(const struct saved *saved)
{
	return *saved->object && !access(saved->object, R_OK) ? saved->object : saved->policy;
}

struct json_object *saved_to_json(const struct saved *saved)
{
	struct json_object *doc = json_object_new_object(), *params = json_object_new_object();

	json_object_object_add(doc, "policy", json_object_new_string(saved->policy));
	json_object_object_add(doc, "object", json_object_new_string(saved->object));
	json_object_object_add(doc, "observer", json_object_new_boolean(!saved->no_observer));
	for (unsigned int i = 0; i < saved->params.nr; i++)
		json_object_object_add(params, saved->params.set[i].name,
				       json_object_new_string(saved->params.set[i].value));
	json_object_object_add(doc, "params", params);
	return doc;
}

static int not_a_status(struct tierctl *t, const char *what, const char *why)
{
	return failure(t, TIER_CLASS_USAGE, "It takes what 'tierctl status --json' prints.",
		       "%s: %.*s", what, (int)strcspn(why, "\n"), why);
}

int saved_from_json(struct tierctl *t, struct saved *saved, struct json_object *doc,
		    const char *what)
{
	struct json_object *field;
	int code = TIER_CLASS_OK;

	memset(saved, 0, sizeof(*saved));
	if (!json_object_object_get_ex(doc, "policy", &field) ||
	    !json_object_is_type(field, json_type_string) || !json_object_get_string_len(field))
		return not_a_status(t, what, "names no policy");
	snprintf(saved->policy, sizeof(saved->policy), "%s", json_object_get_string(field));
	if (json_object_object_get_ex(doc, "object", &field) && json_object_get_string_len(field))
		snprintf(saved->object, sizeof(saved->object), "%s", json_object_get_string(field));
	if (json_object_object_get_ex(doc, "observer", &field))
		saved->no_observer = !json_object_get_boolean(field);
	if (!json_object_object_get_ex(doc, "params", &field))
		return TIER_CLASS_OK;
	if (!json_object_is_type(field, json_type_object))
		return not_a_status(t, what, "params is no object");
	json_object_object_foreach(field, name, value) {
		char word[256];

		snprintf(word, sizeof(word), "%s=%s", name, json_object_get_string(value));
		if (!code)
			code = add(t, &saved->params, word, what);
	}
	return code;
}

void saved_free(struct saved *saved)
{
	settings_free(&saved->params);
}

bool is_saved_status(const char *word)
{
	size_t len = strlen(word);

	return !strcmp(word, "-") || (len > 5 && !strcmp(word + len - 5, ".json"));
}

static int read_json(struct tierctl *t, const char *path, struct json_object **doc)
{
	bool standard = !strcmp(path, "-");
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), code;

	*doc = NULL;
	if (fd < 0)
		return not_a_status(t, path, strerror(errno));
	/* What comes in on stdin is the caller's own doing. */
	code = standard ? TIER_CLASS_OK : check_trusted(t, fd, path);
	if (!code) {
		*doc = json_object_from_fd(fd);
		if (!*doc)
			code = not_a_status(t, path, json_util_get_last_err() ?: "no JSON");
	}
	if (!standard)
		close(fd);
	return code;
}

int saved_read(struct tierctl *t, struct saved *saved, const char *path, struct settings *wins)
{
	struct json_object *doc;
	int code;

	memset(saved, 0, sizeof(*saved));
	code = read_json(t, path, &doc);
	if (code)
		return code;
	code = saved_from_json(t, saved, doc, path);
	json_object_put(doc);
	for (unsigned int i = 0; i < saved->params.nr && !code; i++) {
		const struct tier_setting *set = &saved->params.set[i];
		char word[256];
		bool known = false;

		for (unsigned int j = 0; j < wins->nr; j++)
			known |= !strcmp(wins->set[j].name, set->name);
		snprintf(word, sizeof(word), "%s=%s", set->name, set->value);
		if (!known)
			code = add(t, wins, word, path);
	}
	return code;
}
