/* SPDX-License-Identifier: GPL-2.0 */
/* Between the files of the scale bench only. */
#ifndef SCALE_H
#define SCALE_H

#include <json-c/json.h>

#include "replaybench.h"

/*
 * Bounded tables, filled beyond what they hold: how much of it is still known, by age, and
 * what the policies make of it. Prints, and adds rows to @rows.
 */
int scale_evict(struct tier_ctx *ctx, struct json_object *rows);

#endif /* SCALE_H */
