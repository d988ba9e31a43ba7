// SPDX-License-Identifier: GPL-2.0
/*
 * jget [-s | -n] FILE PATH: print the values at PATH of a JSON file ("-": stdin).
 *
 * PATH is a dotted list of steps. A step is a key of an object, an index of an
 * array, "*" for every member of either, or KEY=VALUE for those elements of an
 * array whose KEY has that VALUE: nodes.node=0.as_target.faults.*
 * One value a line; with -s the sum of the values, which must all be integers;
 * with -n how many there are. A key of an object may itself hold a dot when it
 * is the last step.
 *
 * Exit: 0, 1 when nothing is there (no test may take silence for a zero), 2 when
 * the file is no JSON.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum mode { MODE_PRINT, MODE_SUM, MODE_COUNT };

struct walk {
	enum mode mode;
	int64_t sum;
	long found;
	bool not_a_number;
};

static void take(struct walk *w, struct json_object *value)
{
	w->found++;
	switch (w->mode) {
	case MODE_COUNT:
		break;
	case MODE_SUM:
		if (json_object_get_type(value) != json_type_int)
			w->not_a_number = true;
		w->sum += json_object_get_int64(value);
		break;
	case MODE_PRINT:
		puts(json_object_get_string(value) ?: "null");
		break;
	}
}

/* Does the element's KEY have that VALUE? @step is KEY=VALUE of @len bytes. */
static bool selected(struct json_object *element, const char *step, size_t len)
{
	const char *eq = memchr(step, '=', len);
	struct json_object *member;
	const char *text;
	char key[64];

	if (!eq || (size_t)(eq - step) >= sizeof(key))
		return false;
	memcpy(key, step, eq - step);
	key[eq - step] = '\0';
	if (!json_object_object_get_ex(element, key, &member))
		return false;
	text = json_object_get_string(member) ?: "null";
	len -= eq + 1 - step;
	return strlen(text) == len && !memcmp(text, eq + 1, len);
}

static void walk(struct walk *w, struct json_object *value, const char *path);

static void walk_array(struct walk *w, struct json_object *array, const char *step,
		       size_t len, const char *rest)
{
	bool all = len == 1 && *step == '*';
	bool select = memchr(step, '=', len);
	size_t n = json_object_array_length(array);
	char *end;

	if (!all && !select) {
		size_t i = strtoul(step, &end, 10);

		if (end == step + len && i < n)
			walk(w, json_object_array_get_idx(array, i), rest);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *element = json_object_array_get_idx(array, i);

		if (all || selected(element, step, len))
			walk(w, element, rest);
	}
}

static void walk_object(struct walk *w, struct json_object *object, const char *step,
			size_t len, const char *rest)
{
	struct json_object *member;
	char key[128];

	if (len == 1 && *step == '*') {
		json_object_object_foreach(object, name, each) {
			(void)name;
			walk(w, each, rest);
		}
		return;
	}
	if (len < sizeof(key)) {
		memcpy(key, step, len);
		key[len] = '\0';
		if (json_object_object_get_ex(object, key, &member)) {
			walk(w, member, rest);
			return;
		}
	}
	if (json_object_object_get_ex(object, step, &member))
		take(w, member);
}

static void walk(struct walk *w, struct json_object *value, const char *path)
{
	size_t len = strcspn(path, ".");
	const char *rest = path[len] ? path + len + 1 : path + len;

	if (!*path)
		take(w, value);
	else if (json_object_get_type(value) == json_type_array)
		walk_array(w, value, path, len, rest);
	else if (json_object_get_type(value) == json_type_object)
		walk_object(w, value, path, len, rest);
}

int main(int argc, char **argv)
{
	struct json_object *root;
	struct walk w = { 0 };
	int arg = 1;

	if (arg < argc && !strcmp(argv[arg], "-s"))
		w.mode = MODE_SUM;
	else if (arg < argc && !strcmp(argv[arg], "-n"))
		w.mode = MODE_COUNT;
	if (w.mode != MODE_PRINT)
		arg++;
	if (argc - arg != 2) {
		fprintf(stderr, "usage: jget [-s | -n] FILE PATH\n");
		return 2;
	}
	if (!strcmp(argv[arg], "-"))
		root = json_object_from_fd(STDIN_FILENO);
	else
		root = json_object_from_file(argv[arg]);
	if (!root) {
		fprintf(stderr, "jget: %s is no JSON: %s\n", argv[arg], json_util_get_last_err());
		return 2;
	}
	walk(&w, root, argv[arg + 1]);
	json_object_put(root);
	if (!w.found) {
		fprintf(stderr, "jget: nothing at '%s' in %s\n", argv[arg + 1], argv[arg]);
		return 1;
	}
	if (w.mode == MODE_SUM && w.not_a_number) {
		fprintf(stderr, "jget: '%s' is not all integers\n", argv[arg + 1]);
		return 2;
	}
	if (w.mode == MODE_SUM)
		printf("%" PRId64 "\n", w.sum);
	else if (w.mode == MODE_COUNT)
		printf("%ld\n", w.found);
	return fflush(stdout) ? 2 : 0;
}
