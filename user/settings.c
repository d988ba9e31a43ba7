// SPDX-License-Identifier: GPL-2.0
/* Parameter settings: from words "k=v", or from a saved `status --json`. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
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

static struct json_object *read_json(const char *path)
{
	if (!strcmp(path, "-"))
		return json_object_from_fd(STDIN_FILENO);
	return json_object_from_file(path);
}

int settings_from_status(struct tierctl *t, struct settings *s, const char *path,
			 char *policy, size_t size)
{
	struct json_object *doc = read_json(path), *field;
	int code = TIER_CLASS_OK;

	if (!doc)
		return failure(t, TIER_CLASS_USAGE, "It takes what 'tierctl status --json' prints.",
			    "reading %s: %s", path, json_util_get_last_err() ?: "no JSON");
	if (!json_object_object_get_ex(doc, "policy", &field) ||
	    !json_object_is_type(field, json_type_string) || !json_object_get_string_len(field)) {
		json_object_put(doc);
		return failure(t, TIER_CLASS_USAGE, "It takes what 'tierctl status --json' prints.",
			    "%s names no policy", path);
	}
	/* The object's path, when known, is exact; a name may find another file. */
	snprintf(policy, size, "%s", json_object_get_string(field));
	if (json_object_object_get_ex(doc, "object", &field) && json_object_get_string_len(field) &&
	    !access(json_object_get_string(field), R_OK))
		snprintf(policy, size, "%s", json_object_get_string(field));
	if (json_object_object_get_ex(doc, "params", &field)) {
		json_object_object_foreach(field, name, value) {
			char word[256];

			snprintf(word, sizeof(word), "%s=%s", name, json_object_get_string(value));
			/* The command line wins over the file. */
			for (unsigned int i = 0; i < s->nr; i++)
				if (!strcmp(s->set[i].name, name))
					word[0] = '\0';
			if (*word && !code)
				code = add(t, s, word, path);
		}
	}
	json_object_put(doc);
	return code;
}
