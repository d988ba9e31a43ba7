// SPDX-License-Identifier: GPL-2.0
/* Success gate: closes on failure alone, probes, opens, needs evidence for both. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/gate.h>

/* An interval of candidates; of those admitted every ok_of-th succeeds (0: none). */
static __u32 interval(struct tier_node *node, __u32 *now, __u32 candidates, __u32 ok_of)
{
	__u32 admitted = 0;

	for (__u32 i = 0; i < candidates; i++) {
		if (!tier_gate_admit(node, *now))
			continue;
		admitted++;
		if (ok_of && admitted % ok_of == 0)
			node->moved_ok++;
		else
			node->moved_failed++;
	}
	*now += TIER_GATE_INTERVAL_MS + 1;
	return admitted;
}

static void closes_probes_opens(void **state)
{
	struct tier_node node = { .gate_start_ms = 1000 };
	__u32 now = 1000;

	assert_int_equal(interval(&node, &now, 640, 1), 640);
	assert_int_equal(interval(&node, &now, 640, 0), 640);
	assert_int_equal(interval(&node, &now, 640, 0), 10);
	assert_int_equal(interval(&node, &now, 640, 0), 10);
	assert_int_equal(node.gate_closings, 1);
	/* probes succeed: open from the next interval on */
	assert_int_equal(interval(&node, &now, 640, 1), 10);
	assert_int_equal(interval(&node, &now, 640, 1), 640);
	assert_int_equal(node.gate_closed, 0);
}

static void some_success_is_enough(void **state)
{
	struct tier_node node = { .gate_start_ms = 1000 };
	__u32 now = 1000;

	for (int i = 0; i < 5; i++)
		assert_int_equal(interval(&node, &now, 640, 16), 640);
	assert_int_equal(interval(&node, &now, 640, 17), 640);
	assert_int_equal(interval(&node, &now, 640, 17), 10);
}

static void few_failures_prove_nothing(void **state)
{
	struct tier_node node = { .gate_start_ms = 1000 };
	__u32 now = 1000;

	/* 63 within ten seconds do not, and then they are forgotten */
	for (int i = 0; i < 20; i++)
		assert_int_equal(interval(&node, &now, 9, 0), 9);
	assert_int_equal(node.gate_closed, 0);
}

static void nothing_known_stays_open(void **state)
{
	struct tier_node node = {};

	for (__u32 now = 0; now < 600000; now += 100)
		assert_true(tier_gate_admit(&node, now));
}

/* Closed, and too few probes to tell: it must not open by the mere lapse of time. */
static void waits_for_probes(void **state)
{
	struct tier_node node = { .gate_start_ms = 1000, .gate_closed = 1, .gate_asked = 1 };

	for (__u32 now = 4000; now < 104000; now += 5000)
		assert_false(tier_gate_admit(&node, now));
	node.moved_ok += 3;
	assert_false(tier_gate_admit(&node, 110000));
	node.moved_ok++;
	assert_true(tier_gate_admit(&node, 110001));
}

static void clock_wraps(void **state)
{
	struct tier_node node = { .gate_start_ms = 0xfffffff0 };
	__u32 now = 0xfffffff0;

	interval(&node, &now, 640, 0);
	assert_int_equal(interval(&node, &now, 640, 0), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_probes_opens),
		cmocka_unit_test(some_success_is_enough),
		cmocka_unit_test(few_failures_prove_nothing),
		cmocka_unit_test(nothing_known_stays_open),
		cmocka_unit_test(waits_for_probes),
		cmocka_unit_test(clock_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
