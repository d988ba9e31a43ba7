// SPDX-License-Identifier: GPL-2.0
/* The value model and its renderers: golden text, and JSON that parses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

#include <tier/hist.h>

static char *text;
static size_t size;

static struct out *begin(enum out_format format, bool color, FILE **to)
{
	*to = open_memstream(&text, &size);
	return out__new(*to, format, color);
}

static void end(struct out *out, FILE *to)
{
	out__free(out);
	fclose(to);
}

static void sample(struct out *out)
{
	out_str(out, "policy", "fixed");
	out_u64(out, "memory_bytes", 1610612736);
	out_u64(out, "age_ns", 1500000000);
	out_double(out, "hit_ratio", 0.975);
	out_nodes(out, "top_nodes", 0x5);
	out_begin_array(out, "nodes");
	for (int i = 0; i < 2; i++) {
		out_begin_object(out, NULL);
		out_u64(out, "node", i);
		out_str(out, "tier", i ? "slow" : "fast");
		out_begin_object(out, "as_target");
		out_u64(out, "faults", i ? 0 : 189628);
		out_end(out);
		out_u64(out, "threshold_ms", i ? 0 : 1000);
		out_end(out);
	}
	out_end(out);
}

static const struct out_col head_cols[] = {
	{ "/policy", "policy", 0 }, { "/memory_bytes", "memory", 0 }, { "/age_ns", "since", 0 },
	{ "/hit_ratio", "fast hits", 0 }, { "/top_nodes", "top tier", 0 },
	{ "/absent", "absent", OUT_OPTIONAL }, { "/void", "void", 0 }, { 0 },
};

static const struct out_col node_cols[] = {
	{ "/node", "NODE", 0 }, { "/tier", "TIER", 0 }, { "/as_target/faults", "FAULTS", 0 },
	{ "/threshold_ms", "HOT BELOW", OUT_ZERO_DASH }, { "/absent", "ABSENT", OUT_OPTIONAL }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/nodes", "Nodes", node_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/none", "None", node_cols, "nothing there", false },
	{ OUT_VIEW_TABLE, "/none", "Hidden", node_cols, NULL, false },
	{ 0 },
};

static void text_golden(void **state)
{
	static const char golden[] =
		"policy     fixed\n"
		"memory     1.5 GiB\n"
		"since      1.5 s\n"
		"fast hits  97.5 %\n"
		"top tier   0, 2\n"
		"void       -\n"
		"\n"
		"Nodes\n"
		"NODE  TIER  FAULTS  HOT BELOW\n"
		"   0  fast  189628    1000 ms\n"
		"   1  slow       0          -\n"
		"\n"
		"None\n"
		"nothing there\n";
	FILE *to;
	struct out *out = begin(OUT_TEXT, false, &to);

	sample(out);
	assert_int_equal(out_flush(out, views), 0);
	end(out, to);
	assert_string_equal(text, golden);
	free(text);
}

static void json_parses_and_keeps_all(void **state)
{
	struct json_object *doc, *v;
	FILE *to;
	struct out *out = begin(OUT_JSON, false, &to);

	sample(out);
	out_u64(out, "largest", UINT64_MAX);
	out_s64(out, "smallest", INT64_MIN);
	out_double(out, "no_number", 0.0 / 0.0);
	out_str(out, "odd", "a\xff\"\\\n\033z");
	assert_int_equal(out_flush(out, views), 0);
	end(out, to);
	doc = json_tokener_parse(text);
	assert_non_null(doc);
	assert_true(json_object_object_get_ex(doc, "largest", &v));
	assert_true(json_object_get_uint64(v) == UINT64_MAX);
	assert_true(json_object_object_get_ex(doc, "smallest", &v));
	assert_true(json_object_get_int64(v) == INT64_MIN);
	assert_true(json_object_object_get_ex(doc, "no_number", &v));
	assert_null(v);
	assert_true(json_object_object_get_ex(doc, "odd", &v));
	assert_string_equal(json_object_get_string(v), "a?\"\\\n?z");
	assert_true(json_object_object_get_ex(doc, "nodes", &v));
	assert_int_equal(json_object_array_length(v), 2);
	json_object_put(doc);
	free(text);
}

static void stream_is_a_line_each(void **state)
{
	FILE *to;
	struct out *out = begin(OUT_JSON, false, &to);

	out__set_stream(out, true);
	sample(out);
	assert_int_equal(out_flush(out, NULL), 0);
	out_u64(out, "second", 2);
	assert_int_equal(out_flush(out, NULL), 0);
	end(out, to);
	assert_ptr_equal(strchr(strchr(text, '\n') + 1, '\n'), text + strlen(text) - 1);
	assert_non_null(strstr(text, "\n{\"second\":2}\n"));
	free(text);
}

static void wide_tables_stay_in_80_columns(void **state)
{
	static const struct out_col cols[] = {
		{ "/a", "AAAAAAAAAAAA", 0 }, { "/b", "BBBBBBBBBBBB", 0 }, { "/c", "CCCCCCCCCCCC", 0 },
		{ "/d", "DDDDDDDDDDDD", 0 }, { "/help", "MEANING", 0 }, { 0 },
	};
	static const struct out_view wide[] = {
		{ OUT_VIEW_TABLE, "/rows", NULL, cols, NULL, false }, { 0 },
	};
	FILE *to;
	struct out *out = begin(OUT_TEXT, false, &to);

	out_begin_array(out, "rows");
	out_begin_object(out, NULL);
	for (const char *key = "abcd"; *key; key++)
		out_u64(out, (char[]){ *key, 0 }, 12345678901234567ULL);
	out_str(out, "help", "many words that do not fit beside the numbers and are broken at spaces");
	out_end(out);
	out_end(out);
	assert_int_equal(out_flush(out, wide), 0);
	end(out, to);
	assert_non_null(strstr(text, "12.3P"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("%zu columns: %s", strlen(line), line);
	free(text);
}

/* Two long columns of words beside a number: both are broken, the number is not. */
static void words_give_way(void **state)
{
	static const struct out_col cols[] = {
		{ "/path", "PATH", 0 }, { "/n", "N", 0 }, { "/help", "MEANING", 0 }, { 0 },
	};
	static const struct out_view wide[] = {
		{ OUT_VIEW_TABLE, "/rows", NULL, cols, NULL, false }, { 0 },
	};
	unsigned int lines = 0;
	bool number = false;
	FILE *to;
	struct out *out = begin(OUT_TEXT, false, &to);

	out_begin_array(out, "rows");
	out_begin_object(out, NULL);
	out_str(out, "path", "/usr/lib/modules/6.12.95+deb12-cloud-amd64/updates/tier_policy.ko");
	out_u64(out, "n", 4294967295);
	out_str(out, "help", "many words that do not fit beside the path and are broken at spaces");
	out_end(out);
	out_end(out);
	assert_int_equal(out_flush(out, wide), 0);
	end(out, to);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		number |= strstr(line, "4294967295") != NULL;
		if (strlen(line) > 80)
			fail_msg("%zu columns: %s", strlen(line), line);
		if (line[strlen(line) - 1] == ' ')
			fail_msg("blanks at the end: '%s'", line);
	}
	assert_true(number);
	assert_true(lines >= 3);
	free(text);
}

static void color_only_when_asked(void **state)
{
	FILE *to;
	struct out *out = begin(OUT_TEXT, true, &to);

	sample(out);
	assert_int_equal(out_flush(out, views), 0);
	end(out, to);
	assert_non_null(strstr(text, "\033[1m"));
	free(text);
}

static void terminal_is_safe(void **state)
{
	static const struct out_col cols[] = { { "/evil", "evil", 0 }, { 0 } };
	static const struct out_view evil[] = { { OUT_VIEW_LINES, "", NULL, cols, NULL, false }, { 0 } };
	FILE *to;
	struct out *out = begin(OUT_TEXT, false, &to);

	out_str(out, "evil", "a\033]0;owned\007b\xc2\x9b" "31m\xc3\xa9");
	assert_int_equal(out_flush(out, evil), 0);
	end(out, to);
	assert_string_equal(text, "evil  a?]0;owned?b?31m\xc3\xa9\n");
	free(text);
}

static void utf8(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} cases[] = {
		{ "", true }, { "plain", true }, { "\xc3\xa9", true }, { "\xe2\x82\xac", true },
		{ "\xf0\x9f\x90\xa7", true }, { "\xff", false }, { "\xc3", false },
		{ "\xc0\xaf", false }, { "\xe0\x80\x80", false }, { "\xed\xa0\x80", false },
		{ "\xf4\x90\x80\x80", false }, { "\x80", false }, { "\xe2\x82", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (out_utf8_valid(cases[i].text, false) != cases[i].valid)
			fail_msg("case %zu", i);
	assert_true(out_utf8_valid("a\nb", false));
	assert_false(out_utf8_valid("a\nb", true));
}

static void formats(void **state)
{
	static const struct {
		const char *key;
		double value;
		const char *want;
	} cases[] = {
		{ "x_bytes", 0, "0 B" }, { "x_bytes", 1023, "1023 B" }, { "x_bytes", 1024, "1.0 KiB" },
		{ "x_bytes", 1099511627776.0, "1.0 TiB" }, { "x_ns", 999, "999 ns" },
		{ "x_ns", 1500, "1.5 us" }, { "x_ns", 2e9, "2.0 s" }, { "x_ns", 3600e9, "1.0 h" },
		{ "x_ns", 172800e9, "2.0 d" }, { "x_ms", 17, "17.0 ms" }, { "x_ratio", 0.5, "50.0 %" },
		{ "x_pages_per_s", 250, "250 pages/s" }, { "x_mbps", 64, "64.0 MiB/s" },
		{ "x", 3, "3.0" },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_object *v = json_object_new_double(cases[i].value);

		out_format(cases[i].key, v, false, true, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].want);
		json_object_put(v);
	}
}

/* Prometheus wants seconds and no abbreviations. */
static void metric_names(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "scan_work_ns", "tier_scan_work_seconds" }, { "threshold_ms", "tier_threshold_seconds" },
		{ "rate_limit_pages_per_s", "tier_rate_limit_pages_per_second" },
		{ "promoted_pages", "tier_promoted_pages" }, { "ms", "tier_ms" }, { "columns", "tier_columns" },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		metric_name("tier_", cases[i].name, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].want);
	}
}

/* In a table a number must not outgrow its column. */
static void compact_formats(void **state)
{
	static const struct {
		const char *key;
		__u64 value;
		const char *want;
	} cases[] = {
		{ "x_ms", 9999, "9999 ms" }, { "x_ms", 14335, "14.3 s" }, { "x_ms", 2097152, "2097 s" },
		{ "x_pages", 9999, "9999 pages" }, { "x_pages", 735123, "735k pages" }, { "x", 10000, "10.0k" },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_object *v = json_object_new_uint64(cases[i].value);

		out_format(cases[i].key, v, true, true, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].want);
		json_object_put(v);
	}
}

/* Begin and end that do not match must not pass for a document. */
static void broken_documents_fail(void **state)
{
	FILE *to;
	struct out *out = begin(OUT_JSON, false, &to);

	out_begin_object(out, "open");
	assert_int_equal(out_flush(out, NULL), -ENOMEM);
	out_end(out);
	assert_int_equal(out_flush(out, NULL), -ENOMEM);
	out_u64(out, "fine", 1);
	assert_int_equal(out_flush(out, NULL), 0);
	end(out, to);
	assert_string_equal(text, "{\n  \"fine\": 1\n}\n");
	free(text);
}

/* A number that is to keep its decimals is the same number in text and JSON. */
static void fixed_decimals(void **state)
{
	static const struct out_col cols[] = { { "/time_s", "time", OUT_RAW }, { 0 } };
	static const struct out_view view[] = { { OUT_VIEW_LINES, "", NULL, cols, NULL, false }, { 0 } };
	struct json_object *doc, *v;
	FILE *to;
	struct out *out = begin(OUT_TEXT, false, &to);

	out_fixed(out, "time_s", 123456.7890125, 6);
	assert_int_equal(out_flush(out, view), 0);
	end(out, to);
	assert_string_equal(text, "time  123456.789012\n");
	free(text);
	out = begin(OUT_JSON, false, &to);
	out_fixed(out, "time_s", 123456.7890125, 6);
	assert_int_equal(out_flush(out, view), 0);
	end(out, to);
	doc = json_tokener_parse(text);
	assert_true(json_object_object_get_ex(doc, "time_s", &v));
	assert_true(json_object_is_type(v, json_type_double));
	json_object_put(doc);
	free(text);
}

static void full_disk_is_told(void **state)
{
	FILE *to = fopen("/dev/full", "w");
	struct out *out = out__new(to, OUT_JSON, false);

	out_u64(out, "lost", 1);
	assert_int_equal(out_flush(out, NULL), -ENOSPC);
	out__free(out);
	fclose(to);
}

/* A family of one counter, as large as a counter can be, in either text format. */
static void counter_text(enum out_format format, const char *expected)
{
	FILE *to;
	struct out *out = begin(format, false, &to);

	out_begin_array(out, "families");
	out_begin_object(out, NULL);
	out_str(out, "name", "tier_x_pages");
	out_str(out, "type", "counter");
	out_str(out, "unit", "pages");
	out_str(out, "help", "a \"b\" \\ c");
	out_begin_array(out, "samples");
	out_begin_object(out, NULL);
	out_str(out, "suffix", "_total");
	out_begin_object(out, "labels");
	out_str(out, "node", "a\"\\");
	out_end(out);
	out_u64(out, "value", UINT64_MAX);
	out_end(out);
	out_begin_object(out, NULL);
	out_str(out, "suffix", "_total");
	out_scaled(out, "value", 9007199254740991, 9);
	out_end(out);
	out_end(out);
	out_end(out);
	out_end(out);
	assert_int_equal(out_flush(out, NULL), 0);
	end(out, to);
	assert_string_equal(text, expected);
	free(text);
}

static void largest_counter_is_exact(void **state)
{
	counter_text(OUT_OPENMETRICS,
		     "# TYPE tier_x_pages counter\n# UNIT tier_x_pages pages\n"
		     "# HELP tier_x_pages a \\\"b\\\" \\\\ c\n"
		     "tier_x_pages_total{node=\"a\\\"\\\\\"} 18446744073709551615\n"
		     "tier_x_pages_total 9007199.254740991\n# EOF\n");
	counter_text(OUT_PROMETHEUS,
		     "# TYPE tier_x_pages_total counter\n"
		     "# HELP tier_x_pages_total a \"b\" \\\\ c\n"
		     "tier_x_pages_total{node=\"a\\\"\\\\\"} 18446744073709551615\n"
		     "tier_x_pages_total 9007199.254740991\n");
}

#define YEAR_NS	(365 * 86400 * 1000000000ULL)

/* All counters of a machine that has run for ages: near 2^63, and ten years of scanning. */
static char *old_metrics(__u64 more)
{
	static struct tier_counts pairs[4];
	static struct tier_hist hist[2];
	static struct tier_node node[2];
	static struct tier_moves moves[4];
	static struct tier_stats s = {
		.nr_nodes = 2, .nodes = 3, .top_nodes = 1, .observer = true, .requesting = true,
		.pairs = pairs, .hist = hist, .node = node, .moves = moves,
	};
	const __u64 large = (1ULL << 63) - 5 + more;
	struct out *out;
	FILE *to;

	for (unsigned int i = 0; i < TIER_NR_EV; i++)
		s.module[i] = s.module_before[i] = large;
	for (unsigned int i = 0; i < TIER_NR_SC; i++)
		s.scans.count[i] = large;
	s.scans.count[TIER_SC_WORK_NS] = 10 * YEAR_NS + 123456789 + more;
	for (unsigned int i = 0; i < TIER_NR_MV; i++)
		moves[2].count[i] = large;
	for (unsigned int i = 0; i < TIER_NR_RQ; i++)
		s.request.count[i] = large;
	/* one pair, one reason: all faults are accounted for */
	pairs[2].faults[1] = pairs[2].pages[1] = large;
	hist[0].pages[0] = large - more;
	hist[0].pages[TIER_HIST_LAST] = 7 + more;
	node[0].candidates_pages = large;
	out = begin(OUT_OPENMETRICS, false, &to);
	out_begin_array(out, "families");
	metrics_emit_stats(out, &s);
	out_end(out);
	assert_int_equal(out_flush(out, NULL), 0);
	end(out, to);
	return text;
}

/* @a > @b, both decimal numbers without leading zeros; none fits a double. */
static bool larger(const char *a, const char *b)
{
	size_t len_a = strcspn(a, ".\n"), len_b = strcspn(b, ".\n");

	return len_a != len_b ? len_a > len_b : strcmp(a, b) > 0;
}

static void old_counters_are_exact_and_go_up(void **state)
{
	char *first = old_metrics(0), *second = old_metrics(1), *save_a, *save_b, *a, *b;
	unsigned int grown = 0, lines = 0;

	/* 9223372036854775803 is 2^63 - 5: as a double it is 2^63 */
	assert_non_null(strstr(first, "tier_module_policy_calls_total 9223372036854775803\n"));
	assert_non_null(strstr(second, "tier_module_policy_calls_total 9223372036854775804\n"));
	assert_non_null(strstr(first, "tier_scan_work_seconds_total 315360000.123456789\n"));
	assert_non_null(strstr(second, "tier_scan_work_seconds_total 315360000.123456790\n"));
	assert_non_null(strstr(first, "_bucket{node=\"0\",le=\"+Inf\"} 9223372036854775810\n"));
	assert_non_null(strstr(first, "tier_accounted 1\n"));
	for (a = strtok_r(first, "\n", &save_a), b = strtok_r(second, "\n", &save_b); a && b;
	     a = strtok_r(NULL, "\n", &save_a), b = strtok_r(NULL, "\n", &save_b)) {
		char *value_a = strrchr(a, ' '), *value_b = strrchr(b, ' ');

		if (*a == '#')
			continue;
		lines++;
		assert_null(strchr(value_a, 'e'));
		assert_null(strchr(value_a, '-'));
		assert_int_equal(value_a - a, value_b - b);
		assert_false(larger(value_a + 1, value_b + 1));
		grown += larger(value_b + 1, value_a + 1);
		if (strstr(a, "_total") && strcmp(value_a, " 0") && !larger(value_b + 1, value_a + 1))
			fail_msg("it stands still: %s", a);
	}
	assert_true(!a && !b);
	assert_true(grown > TIER_NR_EV && lines > grown);
	free(first);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_golden),
		cmocka_unit_test(json_parses_and_keeps_all),
		cmocka_unit_test(stream_is_a_line_each),
		cmocka_unit_test(wide_tables_stay_in_80_columns),
		cmocka_unit_test(words_give_way),
		cmocka_unit_test(color_only_when_asked),
		cmocka_unit_test(terminal_is_safe),
		cmocka_unit_test(utf8),
		cmocka_unit_test(formats),
		cmocka_unit_test(metric_names),
		cmocka_unit_test(compact_formats),
		cmocka_unit_test(broken_documents_fail),
		cmocka_unit_test(fixed_decimals),
		cmocka_unit_test(full_disk_is_told),
		cmocka_unit_test(largest_counter_is_exact),
		cmocka_unit_test(old_counters_are_exact_and_go_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
