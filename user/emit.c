// SPDX-License-Identifier: GPL-2.0
/* Parts of documents that several commands share; counters are in emit_stats.c. */
#include "emit.h"

void emit_changes(struct out *out, const struct tier_changes *changes)
{
	out_begin_array(out, "changes");
	for (unsigned int i = 0; i < changes->nr; i++) {
		out_begin_object(out, NULL);
		out_str(out, "what", changes->change[i].what);
		out_str(out, "from", changes->change[i].from);
		out_str(out, "to", changes->change[i].to);
		out_end(out);
	}
	out_end(out);
}

static const struct out_col change_cols[] = {
	{ "/what", "", 0 }, { "/from", "from", 0 }, { "/to", "to", 0 }, { 0 },
};

const struct out_view view_changes[] = {
	{ OUT_VIEW_ITEMS, "/changes", NULL, change_cols, "nothing would change", false },
	{ 0 },
};

static void param(struct out *out, const struct tier_param_info *p)
{
	out_str(out, "name", p->name);
	out_str(out, "unit", p->unit);
	out_str(out, "type", p->size == 8 ? "u64" : "u32");
	out_u64(out, "min", p->min);
	out_u64(out, "max", p->max);
	out_u64(out, "default", p->def);
	out_str(out, "help", p->help);
}

void emit_params(struct out *out, const struct tier_param_info *info, unsigned int nr)
{
	out_begin_array(out, "params");
	for (unsigned int i = 0; i < nr; i++) {
		out_begin_object(out, NULL);
		param(out, &info[i]);
		out_end(out);
	}
	out_end(out);
}

void emit_param_values(struct out *out, const struct tier_param_value *values, unsigned int nr)
{
	out_begin_array(out, "params");
	for (unsigned int i = 0; i < nr; i++) {
		out_begin_object(out, NULL);
		param(out, &values[i].info);
		out_u64(out, "value", values[i].value);
		out_end(out);
	}
	out_end(out);
}

void emit_flags(struct out *out, const char *key, __u32 flags)
{
	out_begin_array(out, key);
	for (unsigned int bit = 0; bit < 32; bit++)
		if (flags >> bit & 1)
			out_str(out, NULL, tier_flag__name(bit) ?: "unknown");
	out_end(out);
}

const char *tier_state__name(enum tier_state state)
{
	static const char *const names[] = {
		[TIER_STATE_NONE] = "none",
		[TIER_STATE_ACTIVE] = "active",
		[TIER_STATE_EJECTED] = "ejected",
		[TIER_STATE_FOREIGN] = "foreign",
		[TIER_STATE_STALE] = "stale",
	};

	return state <= TIER_STATE_STALE ? names[state] : "unknown";
}
