// SPDX-License-Identifier: GPL-2.0
/* The table of commands: one row each, in the order in which help lists them. */
#include "tierctl.h"

#define COMMANDS(X) \
	X(load) X(swap) X(set) X(reset) X(unload) X(clean) \
	X(status) X(stats) X(hist) X(doctor) X(topo) X(get) X(list) X(info) X(replay) X(dump) \
	X(top) X(trace) X(explain) X(metrics) \
	X(daemon) X(config) \
	X(version) X(completion) X(help)

#define DECLARE(name) extern const struct command cmd_##name;
COMMANDS(DECLARE)

#define ROW(name) &cmd_##name,
const struct command *const tierctl_commands[] = { COMMANDS(ROW) NULL };
