// SPDX-License-Identifier: GPL-2.0
/* Parameters of a policy: globals in section .data.params with a BTF tag each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define PARAM_TAG	"tier.param:"	/* MIN:MAX:UNIT:HELP */
#define NEED_TAG	"tier.need:"	/* TIER_NEED_* bits */
#define RATE_UNIT	"MiB/s"		/* such a parameter takes a share of the slow tier's, too */
#define AUTO_TAG	"tier.autoneed:"	/* BITS:BELOW_WRAP_MS */

int tier_btf_var(const struct btf *btf, const char *section, const char *name,
		 unsigned int *size)
{
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_var_secinfo *var;
	const struct btf_type *sec;

	if (id < 0)
		return -ENOENT;
	sec = btf__type_by_id(btf, id);
	var = btf_var_secinfos(sec);
	for (int i = 0; i < btf_vlen(sec); i++, var++) {
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name)) {
			*size = var->size;
			return var->offset;
		}
	}
	return -ENOENT;
}

int tier_btf_member(const struct btf *btf, const char *type, const char *member,
		    unsigned int *size)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_member *m;
	const struct btf_type *t;
	__s64 bytes;

	if (id < 0)
		return -ENOENT;
	t = btf__type_by_id(btf, id);
	m = btf_members(t);
	for (int i = 0; i < btf_vlen(t); i++, m++) {
		if (strcmp(btf__name_by_offset(btf, m->name_off), member))
			continue;
		bytes = btf__resolve_size(btf, m->type);
		if (bytes < 0)
			return bytes;
		*size = bytes;
		return btf_member_bit_offset(t, i) / 8;
	}
	return -ENOENT;
}

/* The next field of a tag, up to ':'; NULL if there is none. */
static const char *tag_field(const char *text, char *field, size_t size)
{
	const char *colon = strchr(text, ':');

	if (!colon || (size_t)(colon - text) >= size)
		return NULL;
	memcpy(field, text, colon - text);
	field[colon - text] = '\0';
	return colon + 1;
}

static int parse_tag(const char *tag, struct tier_param_info *param)
{
	char field[32];

	tag = tag_field(tag, field, sizeof(field));
	if (!tag || tier_parse_u64(field, &param->min))
		return -EINVAL;
	tag = tag_field(tag, field, sizeof(field));
	if (!tag || tier_parse_u64(field, &param->max))
		return -EINVAL;
	tag = tag_field(tag, param->unit, sizeof(param->unit));
	if (!tag)
		return -EINVAL;
	param->help = strdup(tag);
	return param->help ? 0 : -ENOMEM;
}

static int add_param(const struct btf *btf, struct tier_policy_info *info, int var_id,
		     const char *tag, const void *values, size_t size)
{
	const struct btf_type *var = btf__type_by_id(btf, var_id);
	const char *name = btf__name_by_offset(btf, var->name_off);
	struct tier_param_info *grown, *param;
	__u32 value32;
	int offset, err;

	grown = realloc(info->params, (info->nr_params + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	info->params = grown;
	param = &grown[info->nr_params];
	memset(param, 0, sizeof(*param));
	tier_copy(param->name, sizeof(param->name), name);

	offset = tier_btf_var(btf, TIER_PARAMS, name, &param->size);
	if (offset < 0 || (param->size != 4 && param->size != 8) ||
	    (size_t)offset + param->size > size)
		return -EINVAL;
	err = parse_tag(tag, param);
	if (err)
		return err;
	info->nr_params++;
	if (param->size == 4) {
		memcpy(&value32, (const char *)values + offset, 4);
		param->def = value32;
	} else {
		memcpy(&param->def, (const char *)values + offset, 8);
	}
	return 0;
}

static struct tier_param_info *find_param(struct tier_policy_info *info, const char *name)
{
	for (unsigned int i = 0; i < info->nr_params; i++)
		if (!strcmp(info->params[i].name, name))
			return &info->params[i];
	return NULL;
}

static int param_cmp(const void *a, const void *b)
{
	const struct tier_param_info *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int parse_need(const char *tag, bool automatic, struct tier_param_info *param)
{
	__u64 needs, below = 0;
	char field[32];

	if (automatic) {
		tag = tag_field(tag, field, sizeof(field));
		if (!tag || tier_parse_u64(tag, &below) || below > UINT32_MAX)
			return -EINVAL;
		tag = field;
	}
	if (tier_parse_u64(tag, &needs) || needs & ~(__u64)TIER_POLICY_FLAGS_ALL)
		return -EINVAL;
	if (automatic) {
		param->auto_needs |= needs;
		param->auto_below_ms = below;
	} else {
		param->needs |= needs;
	}
	return 0;
}

/* What a parameter at this value asks of the fault record. */
static __u32 needs_of(const struct tier_param_info *param, __u64 value, int stamp_wrap_ms)
{
	__u32 needs = value ? param->needs : 0;

	if (value == 1 || (value == 2 && stamp_wrap_ms > 0 &&
			   (__u32)stamp_wrap_ms < param->auto_below_ms))
		needs |= param->auto_needs;
	return needs;
}

static int each_tag(const struct btf *btf, struct tier_policy_info *info, const char *prefix,
		    const void *values, size_t size)
{
	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id), *var;
		struct tier_param_info *param;
		const char *tag;
		int err;

		if (!btf_is_decl_tag(type) || btf_decl_tag(type)->component_idx != -1)
			continue;
		tag = btf__name_by_offset(btf, type->name_off);
		var = btf__type_by_id(btf, type->type);
		if (strncmp(tag, prefix, strlen(prefix)) || !btf_is_var(var))
			continue;
		tag += strlen(prefix);
		if (!strcmp(prefix, PARAM_TAG)) {
			err = add_param(btf, info, type->type, tag, values, size);
			if (err)
				return err;
			continue;
		}
		param = find_param(info, btf__name_by_offset(btf, var->name_off));
		if (!param || parse_need(tag, !strcmp(prefix, AUTO_TAG), param))
			return -EINVAL;
	}
	return 0;
}

int tier_params_read_info(const struct btf *btf, struct tier_policy_info *info,
			  const void *values, size_t size)
{
	int err;

	err = each_tag(btf, info, PARAM_TAG, values, size);
	if (err)
		return err;
	if (info->nr_params)
		qsort(info->params, info->nr_params, sizeof(*info->params), param_cmp);
	return each_tag(btf, info, NEED_TAG, values, size) ?:
	       each_tag(btf, info, AUTO_TAG, values, size);
}

void tier_param_info_free(struct tier_param_info *params, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		free(params[i].help);
	free(params);
}

/* Levenshtein distance, for "did you mean". */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[65], la = strlen(a), lb = strlen(b);

	if (la > 64 || lb > 64)
		return 64;
	for (unsigned int j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= la; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (unsigned int j = 1; j <= lb; j++) {
			unsigned int up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = up;
			row[j] = best;
		}
	}
	return row[lb];
}

static int unknown(struct tier_ctx *ctx, const char *policy, const char *name,
		   const struct tier_param_info *params, unsigned int nr)
{
	char near[256] = "", all[384] = "", hint[512];

	for (unsigned int i = 0; i < nr; i++) {
		const char *known = params[i].name;
		unsigned int limit = strlen(known) / 3;

		if (distance(name, known) <= limit || (strlen(name) > 2 && strstr(known, name)))
			snprintf(near + strlen(near), sizeof(near) - strlen(near), "%s%s",
				 near[0] ? ", " : "", known);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 all[0] ? ", " : "", known);
	}
	if (near[0])
		snprintf(hint, sizeof(hint), "Did you mean %s?", near);
	else if (all[0])
		snprintf(hint, sizeof(hint), "Its parameters are: %s.", all);
	else
		snprintf(hint, sizeof(hint), "It has no parameters.");
	return tier_fail(ctx, TIER_CLASS_USAGE, -ENOENT, hint,
			 "set %.64s: policy %s has no such parameter", name, policy);
}

int tier_params_check(struct tier_ctx *ctx, const char *policy,
		      const struct tier_param_info *params, unsigned int nr_params,
		      const struct tier_setting *setting, unsigned int *index, __u64 *value)
{
	const struct tier_param_info *param = NULL;
	unsigned int hundredths;
	char hint[256];
	int err;

	for (unsigned int i = 0; i < nr_params && !param; i++) {
		if (strcmp(params[i].name, setting->name))
			continue;
		param = &params[i];
		*index = i;
	}
	if (!param)
		return unknown(ctx, policy, setting->name, params, nr_params);

	snprintf(hint, sizeof(hint), "It takes a whole number from %llu to %llu%s%s%s.", param->min,
		 param->max, param->unit[0] ? " " : "", param->unit, strcmp(param->unit, RATE_UNIT) ?
		 "" : ", or 0.01% to 100% of what the slow tier can be read with");
	if (!strcmp(param->unit, RATE_UNIT) && strchr(setting->value, '%')) {
		err = tier_parse_share(setting->value, &hundredths);
		if (!err) {
			err = tier_slow_tier_mbps(ctx, value);
			if (err)
				return err;
			*value = tier_share_mibps(*value, hundredths);
		}
	} else {
		err = tier_parse_u64(setting->value, value);
	}
	if (err == -EINVAL)
		return tier_fail(ctx, TIER_CLASS_USAGE, err, hint,
				 "set %s of policy %s: \"%.40s\" is not a whole number%s",
				 param->name, policy, setting->value,
				 strcmp(param->unit, RATE_UNIT) ? "" : " or a share");
	if (err || *value < param->min || *value > param->max)
		return tier_fail(ctx, TIER_CLASS_USAGE, -ERANGE, hint,
				 "set %s of policy %s: %.40s is out of range", param->name, policy,
				 setting->value);
	return 0;
}

static int store(const struct btf *btf, const char *name, __u64 value, void *values,
		 size_t size)
{
	unsigned int bytes;
	int offset = tier_btf_var(btf, TIER_PARAMS, name, &bytes);
	__u32 value32 = value;

	if (offset < 0 || (size_t)offset + bytes > size)
		return -EINVAL;
	memcpy((char *)values + offset, bytes == 4 ? (void *)&value32 : (void *)&value, bytes);
	return 0;
}

int tier_params_apply(struct tier_ctx *ctx, const struct tier_policy_info *info,
		      const struct btf *btf, const struct tier_setting *settings,
		      unsigned int nr, void *values, size_t size, int stamp_wrap_ms,
		      __u32 *needs)
{
	__u64 value[64];
	unsigned int index[64];
	int err;

	*needs = 0;
	if (nr > ARRAY_SIZE(value))
		return tier_fail(ctx, TIER_CLASS_USAGE, -E2BIG, NULL,
				 "set %u parameters: %zu at a time at most", nr,
				 ARRAY_SIZE(value));
	for (unsigned int i = 0; i < nr; i++) {
		err = tier_params_check(ctx, info->name, info->params, info->nr_params,
					&settings[i], &index[i], &value[i]);
		if (err)
			return err;
		for (unsigned int j = 0; j < i; j++)
			if (index[j] == index[i])
				return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL,
						 "Give each parameter once.",
						 "set %s: given twice", settings[i].name);
	}
	for (unsigned int i = 0; i < nr; i++) {
		err = store(btf, settings[i].name, value[i], values, size);
		if (err)
			return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL,
					 "set %s: the object's types do not fit its data",
					 settings[i].name);
	}
	for (unsigned int i = 0; i < info->nr_params; i++) {
		__u64 now = info->params[i].def;

		for (unsigned int j = 0; j < nr; j++)
			if (index[j] == i)
				now = value[j];
		*needs |= needs_of(&info->params[i], now, stamp_wrap_ms);
	}
	return 0;
}
