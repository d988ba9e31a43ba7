// SPDX-License-Identifier: GPL-2.0
/*
 * The document's array "families" as OpenMetrics text, or in the older Prometheus
 * text format that node_exporter's textfile collector reads: there the type is
 * declared for the sample's name, and there is neither UNIT nor EOF.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "out/out.h"

static const char *text_of(struct json_object *obj, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(obj, key, &v) || !v)
		return "";
	return json_object_get_string(v);
}

static void escaped(FILE *to, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\\\", to);
		else if (*text == '\n')
			fputs("\\n", to);
		else if (*text == '"' && quotes)
			fputs("\\\"", to);
		else
			fputc(*text, to);
	}
}

static void labels(FILE *to, struct json_object *obj)
{
	const char *sep = "{";

	if (!obj)
		return;
	json_object_object_foreach(obj, name, value) {
		fprintf(to, "%s%s=\"", sep, name);
		escaped(to, json_object_get_string(value), true);
		fputc('"', to);
		sep = ",";
	}
	if (*sep == ',')
		fputc('}', to);
}

static void family(FILE *to, struct json_object *f, bool prometheus)
{
	const char *name = text_of(f, "name"), *type = text_of(f, "type"), *unit = text_of(f, "unit");
	const char *total = !strcmp(type, "counter") ? "_total" : "";
	struct json_object *samples;

	if (prometheus && !strcmp(type, "info")) {	/* unknown to the old format */
		type = "gauge";
		total = "_info";
	}
	fprintf(to, "# TYPE %s%s %s\n", name, prometheus ? total : "", type);
	if (*unit && !prometheus)
		fprintf(to, "# UNIT %s %s\n", name, unit);
	fprintf(to, "# HELP %s%s ", name, prometheus ? total : "");
	/* The old format knows no escaped quotes in HELP; the new one demands them. */
	escaped(to, text_of(f, "help"), !prometheus);
	fputc('\n', to);
	if (!json_object_object_get_ex(f, "samples", &samples))
		return;
	for (size_t i = 0; i < json_object_array_length(samples); i++) {
		struct json_object *s = json_object_array_get_idx(samples, i), *l = NULL;

		json_object_object_get_ex(s, "labels", &l);
		fprintf(to, "%s%s", name, text_of(s, "suffix"));
		labels(to, l);
		fprintf(to, " %s\n", text_of(s, "value"));
	}
}

int out_openmetrics__print(FILE *to, struct json_object *doc, bool prometheus)
{
	struct json_object *families;

	if (!json_object_object_get_ex(doc, "families", &families))
		return -EINVAL;
	for (size_t i = 0; i < json_object_array_length(families); i++)
		family(to, json_object_array_get_idx(families, i), prometheus);
	if (!prometheus)
		fputs("# EOF\n", to);
	return ferror(to) ? -EIO : 0;
}
