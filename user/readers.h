/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading commands for a group of users that are not root. The daemon listens on a
 * socket; a member's tierctl hands over its command line, and the daemon runs it as
 * a tierctl that may change nothing and hands back what that prints.
 *
 * File permissions alone cannot do this: with the pinned link open for reading one
 * may also detach it, and the types of parameters are root's alone.
 */
#ifndef TIER_READERS_H
#define TIER_READERS_H

#include "tierctl.h"

/* Set in the environment of a tierctl that runs for a reader. */
#define READER_ENV	"TIERCTL_READER"

struct readers;

/*
 * Serve members of @group from a process of its own until readers__stop(). @what
 * names the setting in messages. 0 or an exit code, reported.
 */
int readers__start(struct tierctl *t, const char *what, const char *group,
		   struct readers **readers);
void readers__stop(struct readers *readers);

/* May @group's members give this command line? Says why not in @error. 0 or -EPERM. */
int readers_allowed(int argc, char **argv, struct opts_error *error);

/*
 * Let the daemon run the command. True: it did, @code is the exit code; false: there
 * is no daemon that serves readers, or we do not belong to its group.
 */
bool readers_ask(struct tierctl *t, int argc, char **argv, int *code);

#endif /* TIER_READERS_H */
