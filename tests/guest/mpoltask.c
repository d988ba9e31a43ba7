// SPDX-License-Identifier: GPL-2.0
/*
 * mpoltask preferred-many|bind NODES COMMAND [ARGUMENT]...: run a command under that
 * memory policy with NUMA balancing inside the mask.
 *
 * Exit: the command's status; 1 when the kernel refuses the policy, 2 usage.
 */
#include "guest_node.h"

#include <string.h>

int main(int argc, char **argv)
{
	unsigned long nodes = argc > 2 ? node_list(argv[2]) : 0;
	int mode = -1;

	if (argc > 3 && !strcmp(argv[1], "preferred-many"))
		mode = MPOL_PREFERRED_MANY;
	else if (argc > 3 && !strcmp(argv[1], "bind"))
		mode = MPOL_BIND;
	if (mode < 0 || !nodes) {
		fprintf(stderr, "usage: mpoltask preferred-many|bind NODES COMMAND [ARGUMENT]...\n");
		return 2;
	}
	if (task_policy(mode | MPOL_F_NUMA_BALANCING, nodes)) {
		fprintf(stderr, "mpoltask: %s|MPOL_F_NUMA_BALANCING on nodes %s: %m\n", argv[1], argv[2]);
		return 1;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "mpoltask: running %s: %m\n", argv[3]);
	return 1;
}
