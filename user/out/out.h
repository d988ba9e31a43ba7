/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One value model for all that tierctl prints.
 *
 * A command builds a document once: objects, arrays and fields, each field with
 * its unit as the last word of its name (latency_p50_ms, promoted_pages). The
 * document is the JSON output as it stands. The text output shows the same
 * document through views: lists of paths into it, with titles for people. So the
 * two cannot drift apart: a number that is shown in text exists in JSON.
 *
 * Building never fails half-way: a lack of memory is remembered and reported by
 * out_flush().
 */
#ifndef TIER_OUT_H
#define TIER_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

struct out;
struct json_object;

enum out_format {
	OUT_TEXT = 0,
	OUT_JSON = 1,
	OUT_OPENMETRICS = 2,	/* array "families" of the document */
	OUT_PROMETHEUS = 3,	/* the same in the older text format */
};

/* @stream: one document after the other; JSON then takes one line each. */
struct out *out__new(FILE *to, enum out_format format, bool color);
void out__free(struct out *out);
void out__set_stream(struct out *out, bool stream);
bool out__is_json(const struct out *out);
bool out__color(const struct out *out);

/* ---- build ---- */

/* @key is NULL for an element of an array. */
void out_begin_object(struct out *out, const char *key);
void out_begin_array(struct out *out, const char *key);
void out_end(struct out *out);
void out_u64(struct out *out, const char *key, __u64 value);
void out_s64(struct out *out, const char *key, __s64 value);
void out_double(struct out *out, const char *key, double value);
/* With that many decimals, whatever its size. */
void out_fixed(struct out *out, const char *key, double value, int decimals);
/* @value / 10^@decimals, to the last digit: a double is not exact beyond 2^53. */
void out_scaled(struct out *out, const char *key, __u64 value, int decimals);
void out_bool(struct out *out, const char *key, bool value);
/* NULL becomes null; bytes that are no UTF-8 are replaced. */
void out_str(struct out *out, const char *key, const char *value);
/* Node ids of a bit mask as an array of numbers. */
void out_nodes(struct out *out, const char *key, __u64 nodes);

/* ---- show ---- */

enum out_view_kind {
	OUT_VIEW_END = 0,
	OUT_VIEW_LINES = 1,	/* object: one "title  value" line per column */
	OUT_VIEW_TABLE = 2,	/* array of objects: one row each; an object: one row */
	OUT_VIEW_MAP = 3,	/* object with keys of its own: one "key  value" line each */
	OUT_VIEW_TEXT = 4,	/* string: wrapped paragraph */
	OUT_VIEW_ITEMS = 5,	/* array of objects: first column as a line, the rest as
				 * "title  value" lines below it */
};

enum out_col_flags {
	OUT_ZERO_DASH = 1U << 0,	/* 0 means "none": show "-" */
	OUT_OPTIONAL = 1U << 1,		/* LINES: no line; TABLE: no column if absent, null or "" everywhere */
	OUT_NO_UNIT = 1U << 2,		/* the title says the unit */
	OUT_RAW = 1U << 4,		/* a number exactly as in JSON, without unit */
	OUT_EMPTY = 1U << 3,		/* absent, null or "" is left empty, not "-" */
};

struct out_col {
	const char *path;	/* JSON pointer below the view's path: "/as_target/faults/hot" */
	const char *title;
	unsigned int flags;
};

struct out_view {
	enum out_view_kind kind;
	const char *path;	/* JSON pointer, "" is the document */
	const char *title;	/* heading, or NULL */
	const struct out_col *cols;	/* ends with a NULL path */
	const char *empty;	/* TABLE, ITEMS, MAP: sentence if there are no rows; NULL: show nothing */
	bool no_header;		/* TABLE: without column titles */
};

/*
 * Print the document and start a new one. @views ends with OUT_VIEW_END; NULL
 * prints nothing in text form. 0 or a negative errno (-ENOMEM, or why writing
 * failed: a full disk must not look like success).
 */
int out_flush(struct out *out, const struct out_view *views);

/* Drop what was built. */
void out_reset(struct out *out);

/*
 * A value as text: the unit is taken from the last word of @key. Returns @buf.
 * @compact shortens large counts to four digits and a letter.
 */
const char *out_format(const char *key, struct json_object *value, bool compact,
		       bool unit, char *buf, size_t size);

/* Valid UTF-8? Control characters do not count as valid if @printable. */
bool out_utf8_valid(const char *text, bool printable);

/* @text with everything replaced that a terminal or JSON could trip over. */
void out_clean(const char *text, char *buf, size_t size);

/* For renderers only. */
int out_text__print(FILE *to, struct json_object *doc, const struct out_view *views, bool color);
int out_openmetrics__print(FILE *to, struct json_object *doc, bool prometheus);
int out_json__print(FILE *to, struct json_object *doc, bool stream);

#endif /* TIER_OUT_H */
