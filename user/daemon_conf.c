// SPDX-License-Identifier: GPL-2.0
/* The daemon's configuration: "key = value" lines of a file and its drop-ins. */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"

const char *const conf_names[CONF_NR] = {
#define CONF(sym, name, text, number, min, max, help) [CONF_##sym] = name,
#include "conf.def"
#undef CONF
};

static const struct {
	const char *text;
	bool number;
	__u64 min, max;
} rules[CONF_NR] = {
#define CONF(sym, name, text, number, min, max, help) [CONF_##sym] = { text, number, min, max },
#include "conf.def"
#undef CONF
};

#define SET_PREFIX	"set."

int conf_set(struct tierctl *t, struct conf *conf, enum conf_key key, const char *text,
	     const char *from)
{
	struct conf_value *value = &conf->value[key];
	struct opts_error error;

	if (rules[key].number && opts_number(conf_names[key], text, rules[key].min, rules[key].max,
					     &value->number, &error))
		return failure(t, TIER_CLASS_USAGE, error.hint, "%s: %s", from, error.message);
	if (strlen(text) >= sizeof(value->text))
		return failure(t, TIER_CLASS_USAGE, "", "%s: value of %s is too long", from,
			       conf_names[key]);
	strcpy(value->text, text);
	snprintf(value->from, sizeof(value->from), "%s", from);
	return TIER_CLASS_OK;
}

/* "set.NAME = VALUE": a parameter of the policy; what it may be the policy knows. */
static int set_param(struct tierctl *t, struct conf *conf, const char *name, const char *text,
		     const char *from)
{
	unsigned int i = 0;

	while (i < conf->nr_set && strcmp(conf->set[i].name, name))
		i++;
	if (i == CONF_MAX_SET || !*name || strlen(name) >= sizeof(conf->set[i].name) || !*text ||
	    strlen(text) >= sizeof(conf->set[i].value))
		return failure(t, TIER_CLASS_USAGE, "Write it as set.NAME = NUMBER, at most 32 of them.",
			       "%s: set.%.64s cannot be taken over", from, name);
	if (i == conf->nr_set)
		conf->nr_set++;
	strcpy(conf->set[i].name, name);
	strcpy(conf->set[i].value, text);
	snprintf(conf->set[i].from, sizeof(conf->set[i].from), "%s", from);
	return TIER_CLASS_OK;
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static int read_line(struct tierctl *t, struct conf *conf, char *line, const char *from)
{
	char *eq = strchr(line, '='), *key, *text;

	if (!eq)
		return failure(t, TIER_CLASS_USAGE, "Lines are \"key = value\", comments begin with #.",
			       "%s: no '=' in \"%.80s\"", from, line);
	*eq = '\0';
	key = trim(line);
	text = trim(eq + 1);
	if (!strncmp(key, SET_PREFIX, strlen(SET_PREFIX)))
		return set_param(t, conf, key + strlen(SET_PREFIX), text, from);
	for (unsigned int i = 0; i < CONF_NR; i++)
		if (!strcmp(key, conf_names[i]))
			return conf_set(t, conf, i, text, from);
	return failure(t, TIER_CLASS_USAGE, "'tierctl config' lists the keys.",
		       "%s: unknown key \"%.80s\"", from, key);
}

static int read_lines(struct tierctl *t, struct conf *conf, FILE *file, const char *path)
{
	int code = TIER_CLASS_OK, nr = 0;
	char *line = NULL, *text;
	char from[512];
	size_t size = 0;

	while (!code && getline(&line, &size, file) >= 0) {
		nr++;
		text = trim(line);
		if (!*text || *text == '#')
			continue;
		snprintf(from, sizeof(from), "%s:%d", path, nr);
		code = read_line(t, conf, text, from);
	}
	if (!code && ferror(file))
		code = failure(t, TIER_CLASS_FAILED, "", "reading %s: %s", path, strerror(errno));
	free(line);
	return code;
}

static int read_file(struct tierctl *t, struct conf *conf, const char *path, bool must)
{
	FILE *file = fopen(path, "re");
	int code;

	if (!file && errno == ENOENT && !must)
		return TIER_CLASS_OK;
	if (!file)
		return failure(t, errno == EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_USAGE, "",
			       "open %s: %s", path, strerror(errno));
	code = check_trusted(t, fileno(file), path) ?: read_lines(t, conf, file, path);
	fclose(file);
	return code;
}

int conf_read(struct tierctl *t, struct conf *conf, const char *path, bool named)
{
	char pattern[512];
	glob_t found;
	int code = TIER_CLASS_OK;

	memset(conf, 0, sizeof(*conf));
	for (unsigned int i = 0; i < CONF_NR && !code; i++)
		code = conf_set(t, conf, i, rules[i].text, "default");
	if (!code)
		code = read_file(t, conf, path, named);
	if (code || snprintf(pattern, sizeof(pattern), "%s.d/*.conf", path) >= (int)sizeof(pattern) ||
	    glob(pattern, 0, NULL, &found))
		return code;
	for (size_t i = 0; i < found.gl_pathc && !code; i++)
		code = read_file(t, conf, found.gl_pathv[i], true);
	globfree(&found);
	return code;
}
