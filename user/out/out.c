// SPDX-License-Identifier: GPL-2.0
/* The document that a command builds, and where it goes. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/out.h"

#define MAX_DEPTH	12

struct out {
	FILE *to;
	enum out_format format;
	bool color;
	bool stream;
	bool broken;		/* out of memory, or begin and end do not match */
	unsigned int depth;	/* open objects and arrays; [0] is the document */
	struct json_object *open[MAX_DEPTH];
};

struct out *out__new(FILE *to, enum out_format format, bool color)
{
	struct out *out = calloc(1, sizeof(*out));

	if (!out)
		return NULL;
	out->to = to;
	out->format = format;
	out->color = color;
	out_reset(out);
	return out;
}

void out__free(struct out *out)
{
	if (!out)
		return;
	json_object_put(out->open[0]);
	free(out);
}

void out__set_stream(struct out *out, bool stream)
{
	out->stream = stream;
}

bool out__is_json(const struct out *out)
{
	return out->format == OUT_JSON;
}

bool out__color(const struct out *out)
{
	return out->color;
}

void out_reset(struct out *out)
{
	json_object_put(out->open[0]);
	out->open[0] = json_object_new_object();
	out->depth = 0;
	out->broken = !out->open[0];
}

static bool add(struct out *out, const char *key, struct json_object *value)
{
	struct json_object *parent = out->open[out->depth];
	int err = -1;

	if (out->broken) {
		json_object_put(value);
		return false;
	}
	if (json_object_is_type(parent, json_type_array))
		err = json_object_array_add(parent, value);
	else if (key)
		err = json_object_object_add(parent, key, value);
	if (err) {
		json_object_put(value);
		out->broken = true;
	}
	return !err;
}

/* Constructors give NULL when memory is short, and NULL would read as null. */
static void add_new(struct out *out, const char *key, struct json_object *value)
{
	if (!value)
		out->broken = true;
	add(out, key, value);
}

static void begin(struct out *out, const char *key, struct json_object *value)
{
	if (!value || out->depth + 1 >= MAX_DEPTH)
		out->broken = true;
	if (add(out, key, value))
		out->open[++out->depth] = value;
}

void out_begin_object(struct out *out, const char *key)
{
	begin(out, key, json_object_new_object());
}

void out_begin_array(struct out *out, const char *key)
{
	begin(out, key, json_object_new_array());
}

void out_end(struct out *out)
{
	if (out->broken)
		return;
	if (out->depth)
		out->depth--;
	else
		out->broken = true;
}

void out_u64(struct out *out, const char *key, __u64 value)
{
	add_new(out, key, json_object_new_uint64(value));
}

void out_s64(struct out *out, const char *key, __s64 value)
{
	add_new(out, key, json_object_new_int64(value));
}

static void add_double(struct out *out, const char *key, double value, const char *fmt, int digits)
{
	char text[64];

	if (!isfinite(value)) {	/* JSON has no word for it */
		add(out, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), fmt, digits, value);
	add_new(out, key, json_object_new_double_s(value, text));
}

void out_double(struct out *out, const char *key, double value)
{
	/* Readable digits; json-c would print all 17. */
	add_double(out, key, value, "%.*g", 6);
}

void out_fixed(struct out *out, const char *key, double value, int decimals)
{
	add_double(out, key, value, "%.*f", decimals);
}

void out_scaled(struct out *out, const char *key, __u64 value, int decimals)
{
	__u64 one = 1;
	char text[64];

	for (int i = 0; i < decimals; i++)
		one *= 10;
	if (decimals)
		snprintf(text, sizeof(text), "%llu.%0*llu", value / one, decimals, value % one);
	else
		snprintf(text, sizeof(text), "%llu", value);
	add_new(out, key, json_object_new_double_s((double)value / one, text));
}

void out_bool(struct out *out, const char *key, bool value)
{
	add_new(out, key, json_object_new_boolean(value));
}

void out_str(struct out *out, const char *key, const char *value)
{
	size_t size;
	char *clean;

	if (!value) {
		add(out, key, NULL);
		return;
	}
	if (out_utf8_valid(value, false)) {
		add_new(out, key, json_object_new_string(value));
		return;
	}
	size = strlen(value) + 1;
	clean = malloc(size);
	if (!clean) {
		out->broken = true;
		return;
	}
	out_clean(value, clean, size);
	add_new(out, key, json_object_new_string(clean));
	free(clean);
}

void out_nodes(struct out *out, const char *key, __u64 nodes)
{
	out_begin_array(out, key);
	for (unsigned int nid = 0; nid < 64; nid++)
		if (nodes >> nid & 1)
			out_u64(out, NULL, nid);
	out_end(out);
}

int out_flush(struct out *out, const struct out_view *views)
{
	int err;

	if (out->broken || out->depth) {
		out_reset(out);
		return -ENOMEM;
	}
	if (out->format == OUT_JSON)
		err = out_json__print(out->to, out->open[0], out->stream);
	else if (out->format != OUT_TEXT)
		err = out_openmetrics__print(out->to, out->open[0], out->format == OUT_PROMETHEUS);
	else
		err = views ? out_text__print(out->to, out->open[0], views, out->color) : 0;
	if (!err && (fflush(out->to) || ferror(out->to)))
		err = errno ? -errno : -EIO;
	out_reset(out);
	return err;
}

/* Length of the valid UTF-8 sequence at @s, 0 if there is none. */
static unsigned int utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead, len;
		unsigned int min;
	} kinds[] = {
		{ 0x80, 0x00, 1, 0 }, { 0xe0, 0xc0, 2, 0x80 },
		{ 0xf0, 0xe0, 3, 0x800 }, { 0xf8, 0xf0, 4, 0x10000 },
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		unsigned int code;

		if ((s[0] & kinds[k].mask) != kinds[k].lead)
			continue;
		code = s[0] & ~kinds[k].mask & 0xff;
		for (unsigned int i = 1; i < kinds[k].len; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (s[i] & 0x3f);
		}
		if (code < kinds[k].min || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return 0;
		return kinds[k].len;
	}
	return 0;
}

static bool is_control(const unsigned char *s)
{
	/* C0, DEL, and C1, which some terminals obey in its UTF-8 form too */
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

bool out_utf8_valid(const char *text, bool printable)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned int len;

	for (; *s; s += len) {
		len = utf8_len(s);
		if (!len || (printable && is_control(s)))
			return false;
	}
	return true;
}

void out_clean(const char *text, char *buf, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = 0;

	while (*s && at + 1 < size) {
		unsigned int len = utf8_len(s);

		if (!len || (is_control(s) && *s != '\n' && *s != '\t')) {
			buf[at++] = '?';
			s += len ? len : 1;
			continue;
		}
		if (at + len >= size)
			break;
		memcpy(buf + at, s, len);
		at += len;
		s += len;
	}
	buf[at] = '\0';
}
