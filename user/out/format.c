// SPDX-License-Identifier: GPL-2.0
/* One value as text. The unit is the last word of the value's name. */
#include <json-c/json.h>
#include <string.h>

#include "out/out.h"

static bool ends_with(const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	return len >= tail_len && !strcmp(text + len - tail_len, tail);
}

static void scaled(double value, double step, const char *const *units, const char *last,
		   char *buf, size_t size)
{
	unsigned int i = 0;

	while (value >= step && units[i + 1]) {
		value /= step;
		i++;
	}
	snprintf(buf, size, "%.*f%s%s", i && value < 100 ? 1 : 0, value, units[i], last);
}

static void count(double value, bool exact_int, __s64 integer, bool compact, const char *unit,
		  char *buf, size_t size)
{
	static const char *const si[] = { "", "k", "M", "G", "T", "P", NULL };

	if (compact && value >= 10000)
		scaled(value, 1000, si, unit, buf, size);
	else if (exact_int)
		snprintf(buf, size, "%lld%s", (long long)integer, unit);
	else
		snprintf(buf, size, "%.*f%s", value < 100 ? 1 : 0, value, unit);
}

static void time_ns(double ns, char *buf, size_t size)
{
	static const char *const units[] = { " ns", " us", " ms", " s", NULL };

	if (ns >= 86400e9)
		snprintf(buf, size, "%.1f d", ns / 86400e9);
	else if (ns >= 3600e9)
		snprintf(buf, size, "%.1f h", ns / 3600e9);
	else if (ns >= 600e9)
		snprintf(buf, size, "%.1f min", ns / 60e9);
	else
		scaled(ns, 1000, units, "", buf, size);
}

static void number(const char *key, struct json_object *v, bool compact, bool unit,
		   char *buf, size_t size)
{
	static const char *const binary[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", NULL };
	static const struct {
		const char *tail, *unit;
	} plain[] = {
		{ "_pages_per_s", " pages/s" }, { "_faults_per_s", " faults/s" },
		{ "_mbps", " MiB/s" }, { "_mib_per_s", " MiB/s" }, { "_per_s", "/s" },
		{ "_ms", " ms" }, { "_s", " s" }, { "_pages", " pages" },
		{ "_faults", " faults" }, { "_insns", " insns" },
	};
	double value = json_object_get_double(v);
	bool exact = json_object_is_type(v, json_type_int);
	const char *text = "";

	if (ends_with(key, "_ratio")) {
		snprintf(buf, size, "%.1f%s", value * 100, unit ? " %" : "");
		return;
	}
	if (unit && ends_with(key, "_bytes")) {
		scaled(value, 1024, binary, "", buf, size);
		return;
	}
	if (unit && ends_with(key, "_ns")) {
		time_ns(value, buf, size);
		return;
	}
	/* "k ms" would be longer than the column and stranger than seconds. */
	if (unit && compact && value >= 10000 && ends_with(key, "_ms")) {
		snprintf(buf, size, "%.*f s", value < 100e3 ? 1 : 0, value / 1e3);
		return;
	}
	for (size_t i = 0; unit && i < sizeof(plain) / sizeof(plain[0]); i++)
		if (ends_with(key, plain[i].tail)) {
			text = plain[i].unit;
			break;
		}
	if (exact && value > 9.2e18)	/* does not fit into the signed form */
		snprintf(buf, size, "%s%s", json_object_get_string(v), text);
	else
		count(value, exact, json_object_get_int64(v), compact, text, buf, size);
}

static void list(const char *key, struct json_object *v, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < json_object_array_length(v) && at < size; i++) {
		char one[256];

		out_format(key, json_object_array_get_idx(v, i), false, false, one, sizeof(one));
		at += snprintf(buf + at, size - at, "%s%s", i ? ", " : "", one);
	}
}

const char *out_format(const char *key, struct json_object *v, bool compact, bool unit,
		       char *buf, size_t size)
{
	switch (json_object_get_type(v)) {
	case json_type_null:
		snprintf(buf, size, "-");
		break;
	case json_type_boolean:
		snprintf(buf, size, "%s", json_object_get_boolean(v) ? "yes" : "no");
		break;
	case json_type_int:
	case json_type_double:
		number(key, v, compact, unit, buf, size);
		break;
	case json_type_string:
		out_clean(json_object_get_string(v), buf, size);
		break;
	case json_type_array:
		list(key, v, buf, size);
		break;
	default:
		snprintf(buf, size, "%s",
			 json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN));
	}
	return buf;
}
