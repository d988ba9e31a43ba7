// SPDX-License-Identifier: GPL-2.0
/*
 * The document as text for people: at most 80 columns, every number with its
 * unit, numbers to the right, titles only where they help.
 */
#include <errno.h>
#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <stdlib.h>
#include <string.h>

#include "out/out.h"

#define WIDTH		80
#define GAP		2
#define MAX_COLS	16
#define MAX_CELL	512
#define MAX_LINES	16	/* of one cell */
#define MAX_LINE	328	/* bytes: 80 columns of UTF-8 */
#define MIN_WORDS	10	/* columns of words are not made narrower */

#define BOLD	"\033[1m"
#define PLAIN	"\033[0m"

static struct json_object *get(struct json_object *base, const char *path)
{
	struct json_object *value = NULL;

	if (!*path)
		return base;
	if (!base || json_pointer_get(base, path, &value))
		return NULL;
	return value;
}

static const char *last_word(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_number(struct json_object *v)
{
	return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

static bool is_blank(struct json_object *v)
{
	if (json_object_is_type(v, json_type_array))
		return !json_object_array_length(v);
	return !v || (json_object_is_type(v, json_type_string) && !json_object_get_string_len(v));
}

/* Columns on the screen: code points, which is right for all that we print. */
static size_t columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void cell(const struct out_col *col, struct json_object *row, bool compact,
		 bool unit, char *buf, size_t size)
{
	struct json_object *v = get(row, col->path);

	if (is_blank(v) ||
	    (col->flags & OUT_ZERO_DASH && is_number(v) && json_object_get_double(v) == 0)) {
		snprintf(buf, size, "%s", col->flags & OUT_EMPTY ? "" : "-");
		return;
	}
	if (col->flags & OUT_RAW) {
		snprintf(buf, size, "%s", json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN));
		return;
	}
	out_format(last_word(col->path), v, compact, unit && !(col->flags & OUT_NO_UNIT), buf, size);
}

static void heading(FILE *to, const char *title, bool color)
{
	if (title)
		fprintf(to, "%s%s%s\n", color ? BOLD : "", title, color ? PLAIN : "");
}

/* Bytes and columns of the next word, or of what one line can hold of it. */
static size_t next_word(const char *text, size_t room, size_t *wide)
{
	size_t len = 0;

	for (*wide = 0; text[len] && text[len] != ' ' && text[len] != '\n'; len++) {
		if ((text[len] & 0xc0) == 0x80)
			continue;
		if (*wide == room)
			break;
		++*wide;
	}
	return len;
}

/* @text from column @indent on, broken at spaces; newlines are kept. */
static void wrapped(FILE *to, const char *text, size_t indent)
{
	size_t at = indent;

	while (*text) {
		size_t wide, word = next_word(text, WIDTH - indent, &wide);

		if (at > indent && at + 1 + wide > WIDTH) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent && word) {
			fputc(' ', to);
			at++;
		}
		fwrite(text, 1, word, to);
		at += wide;
		text += word;
		if (*text == '\n' && text[1]) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		}
		if (*text == ' ' || *text == '\n')
			text++;
	}
	fputc('\n', to);
}

static void print_lines(FILE *to, const struct out_col *cols, struct json_object *obj,
			int indent)
{
	char buf[4096];
	size_t wide = 0;

	for (const struct out_col *c = cols; c->path; c++)
		if (!(c->flags & OUT_OPTIONAL && is_blank(get(obj, c->path))) &&
		    columns(c->title) > wide)
			wide = columns(c->title);
	for (const struct out_col *c = cols; c->path; c++) {
		if (c->flags & OUT_OPTIONAL && is_blank(get(obj, c->path)))
			continue;
		cell(c, obj, false, true, buf, sizeof(buf));
		fprintf(to, "%*s%-*s", indent, "", (int)(wide + GAP), c->title);
		wrapped(to, buf, indent + wide + GAP);
	}
}

static void print_items(FILE *to, const struct out_view *view, struct json_object *rows,
			bool color)
{
	char buf[4096];

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		cell(view->cols, row, false, true, buf, sizeof(buf));
		if (color)
			fputs(BOLD, to);
		wrapped(to, buf, 0);
		if (color)
			fputs(PLAIN, to);
		print_lines(to, view->cols + 1, row, 2);
	}
}

static void print_map(FILE *to, struct json_object *obj)
{
	char buf[MAX_CELL];
	size_t wide = 0;

	json_object_object_foreach(obj, key, unused) {
		(void)unused;
		if (columns(key) > wide)
			wide = columns(key);
	}
	json_object_object_foreach(obj, name, value) {
		out_format(name, value, false, true, buf, sizeof(buf));
		fprintf(to, "%-*s", (int)(wide + GAP), name);
		wrapped(to, buf, wide + GAP);
	}
}

struct layout {
	const struct out_col *cols[MAX_COLS];
	size_t width[MAX_COLS];
	bool right[MAX_COLS];
	unsigned int nr;
	size_t total;
	bool compact;
};

/* An object is a table of one row. */
static size_t nr_rows(struct json_object *rows)
{
	return json_object_is_type(rows, json_type_array) ? json_object_array_length(rows) : 1;
}

static struct json_object *row_at(struct json_object *rows, size_t i)
{
	return json_object_is_type(rows, json_type_array) ?
		json_object_array_get_idx(rows, i) : rows;
}

/* Columns of words give way, the widest first; numbers are never broken. */
static void shrink(struct layout *l)
{
	while (l->total > WIDTH) {
		unsigned int widest = MAX_COLS;

		for (unsigned int i = 0; i < l->nr; i++)
			if (!l->right[i] && l->width[i] > MIN_WORDS &&
			    l->width[i] > columns(l->cols[i]->title) &&
			    (widest == MAX_COLS || l->width[i] >= l->width[widest]))
				widest = i;
		if (widest == MAX_COLS)
			return;
		l->width[widest]--;
		l->total--;
	}
}

static void measure(struct layout *l, const struct out_view *view, struct json_object *rows,
		    bool compact)
{
	char buf[MAX_CELL];

	memset(l, 0, sizeof(*l));
	l->compact = compact;
	for (const struct out_col *c = view->cols; c->path && l->nr < MAX_COLS; c++) {
		size_t wide = columns(c->title);
		bool blank = true, number = false;

		for (size_t i = 0; i < nr_rows(rows); i++) {
			struct json_object *row = row_at(rows, i);
			struct json_object *v = get(row, c->path);

			blank = blank && is_blank(v);
			number = number || is_number(v);
			cell(c, row, compact, true, buf, sizeof(buf));
			if (columns(buf) > wide)
				wide = columns(buf);
		}
		if (blank && c->flags & OUT_OPTIONAL)
			continue;
		l->cols[l->nr] = c;
		l->width[l->nr] = wide;
		l->right[l->nr++] = number;
		l->total += wide + (l->nr > 1 ? GAP : 0);
	}
	shrink(l);
}

/* Breaks @text into lines of @width columns; returns how many. */
static unsigned int break_cell(const char *text, size_t width, char line[][MAX_LINE])
{
	unsigned int nr = 0;
	size_t at = 0, bytes = 0;

	line[0][0] = '\0';
	while (*text) {
		size_t wide, word = next_word(text, width, &wide);

		if (at && (at + 1 + wide > width || bytes + 1 + word >= MAX_LINE)) {
			if (++nr == MAX_LINES)
				return nr;
			at = bytes = 0;
		}
		if (at) {
			line[nr][bytes++] = ' ';
			at++;
		}
		if (word >= MAX_LINE)
			word = MAX_LINE - 1;
		memcpy(line[nr] + bytes, text, word);
		bytes += word;
		at += wide;
		line[nr][bytes] = '\0';
		text += word;
		if (*text == ' ' || *text == '\n')
			text++;
	}
	return nr + 1;
}

/* Line @n of a row, without blanks at its end. */
static void print_line(FILE *to, const struct layout *l, char cells[][MAX_LINES][MAX_LINE],
		       const unsigned int *lines, unsigned int n)
{
	size_t pad = 0;

	for (unsigned int i = 0; i < l->nr; i++) {
		const char *text = n < lines[i] ? cells[i][n] : "";
		size_t wide = columns(text), left = wide < l->width[i] ? l->width[i] - wide : 0;

		pad += i ? GAP : 0;
		if (l->right[i])
			pad += left;
		if (*text) {
			fprintf(to, "%*s%s", (int)pad, "", text);
			pad = 0;
		} else {
			pad += wide;
		}
		if (!l->right[i])
			pad += left;
	}
	fputc('\n', to);
}

static void print_row(FILE *to, const struct layout *l, struct json_object *row)
{
	char cells[MAX_COLS][MAX_LINES][MAX_LINE];
	unsigned int lines[MAX_COLS], most = 1;

	for (unsigned int i = 0; i < l->nr; i++) {
		char buf[MAX_CELL];

		if (row)
			cell(l->cols[i], row, l->compact, true, buf, sizeof(buf));
		else
			snprintf(buf, sizeof(buf), "%s", l->cols[i]->title);
		/* A title may have blanks at its beginning: they make room. */
		if (!row || l->right[i]) {
			snprintf(cells[i][0], MAX_LINE, "%.*s", MAX_LINE - 1, buf);
			lines[i] = 1;
		} else {
			lines[i] = break_cell(buf, l->width[i], cells[i]);
		}
		most = lines[i] > most ? lines[i] : most;
	}
	for (unsigned int n = 0; n < most; n++)
		print_line(to, l, cells, lines, n);
}

static void print_table(FILE *to, const struct out_view *view, struct json_object *rows,
			bool color)
{
	struct layout l;

	measure(&l, view, rows, false);
	if (l.total > WIDTH)
		measure(&l, view, rows, true);
	if (!view->no_header) {
		if (color)
			fputs(BOLD, to);
		print_row(to, &l, NULL);
		if (color)
			fputs(PLAIN, to);
	}
	for (size_t i = 0; i < nr_rows(rows); i++)
		print_row(to, &l, row_at(rows, i));
}

static bool has_rows(enum out_view_kind kind, struct json_object *obj)
{
	if (kind == OUT_VIEW_TABLE)
		return obj && nr_rows(obj);
	if (kind == OUT_VIEW_MAP)
		return obj && json_object_object_length(obj);
	return obj && !is_blank(obj);
}

int out_text__print(FILE *to, struct json_object *doc, const struct out_view *views, bool color)
{
	bool first = true;

	for (const struct out_view *v = views; v->kind != OUT_VIEW_END; v++) {
		struct json_object *obj = get(doc, v->path);

		if (!has_rows(v->kind, obj) && !v->empty)
			continue;
		if (!first && v->title)
			fputc('\n', to);
		first = false;
		heading(to, v->title, color);
		if (!has_rows(v->kind, obj))
			wrapped(to, v->empty, 0);
		else if (v->kind == OUT_VIEW_LINES)
			print_lines(to, v->cols, obj, 0);
		else if (v->kind == OUT_VIEW_TABLE)
			print_table(to, v, obj, color && !v->no_header);
		else if (v->kind == OUT_VIEW_ITEMS)
			print_items(to, v, obj, color);
		else if (v->kind == OUT_VIEW_MAP)
			print_map(to, obj);
		else
			wrapped(to, json_object_get_string(obj), 0);
	}
	return ferror(to) ? -EIO : 0;
}
