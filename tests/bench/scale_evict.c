// SPDX-License-Identifier: GPL-2.0
/* See scale.h. */
#include "scale.h"
int scale_evict(struct tier_ctx *ctx, struct json_object *rows) { return 0; }
