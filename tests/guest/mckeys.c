// SPDX-License-Identifier: GPL-2.0
/*
 * mckeys PORT fill|read KEYS BYTES [ROUNDS]: store keys in a memcached on this machine, or
 * read them all back. Each value says which key it belongs to, and is checked.
 *
 * Exit: 0 all as it should be, 1 an error or a missing or wrong value, 2 usage.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH	16

static FILE *dial(int port, FILE **in)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	FILE *out;

	/* What is left of a request must not wait for the server's delayed answer. */
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return NULL;
	*in = fdopen(fd, "r");
	out = fdopen(fd, "w");
	return *in && out && !setvbuf(out, NULL, _IOFBF, 1 << 16) ? out : NULL;
}

static void make_value(char *value, size_t bytes, long key)
{
	memset(value, 'a' + key % 26, bytes);
	value[snprintf(value, bytes, "%ld", key)] = ' ';
}

/* Requests go out in batches: waiting for each answer takes longer than all the rest. */
static int fill(FILE *out, FILE *in, long keys, size_t bytes, char *value)
{
	char line[64];

	for (long key = 0, answered = 0; key < keys; key++) {
		make_value(value, bytes, key);
		fprintf(out, "set key%ld 0 0 %zu\r\n", key, bytes);
		fwrite(value, bytes, 1, out);
		fputs("\r\n", out);
		if (key - answered < BATCH - 1 && key < keys - 1)
			continue;
		fflush(out);
		for (; answered <= key; answered++)
			if (!fgets(line, sizeof(line), in) || strncmp(line, "STORED", 6)) {
				fprintf(stderr, "mckeys: set key%ld: no or wrong answer\n", answered);
				return 1;
			}
	}
	return 0;
}

static int read_back(FILE *out, FILE *in, long keys, size_t bytes, char *value, char *got)
{
	char line[64];

	for (long key = 0, answered = 0; key < keys; key++) {
		fprintf(out, "get key%ld\r\n", key);
		if (key - answered < BATCH - 1 && key < keys - 1)
			continue;
		fflush(out);
		for (; answered <= key; answered++) {
			make_value(value, bytes, answered);
			if (!fgets(line, sizeof(line), in) || strncmp(line, "VALUE", 5) ||
			    fread(got, bytes, 1, in) != 1 || memcmp(got, value, bytes) ||
			    !fgets(line, sizeof(line), in) || !fgets(line, sizeof(line), in) ||
			    strncmp(line, "END", 3)) {
				fprintf(stderr, "mckeys: get key%ld: no or wrong answer\n", answered);
				return 1;
			}
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	long keys = argc > 4 ? strtol(argv[3], NULL, 10) : 0;
	size_t bytes = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	long rounds = argc > 5 ? strtol(argv[5], NULL, 10) : 1;
	char *value, *got;
	FILE *in, *out;
	int err = 0;

	if (keys < 1 || bytes < 32 || (strcmp(argv[2], "fill") && strcmp(argv[2], "read"))) {
		fprintf(stderr, "usage: mckeys PORT fill|read KEYS BYTES [ROUNDS]\n");
		return 2;
	}
	out = dial(atoi(argv[1]), &in);
	value = malloc(bytes);
	got = malloc(bytes);
	if (!out || !in || !value || !got) {
		fprintf(stderr, "mckeys: connecting to port %s: %m\n", argv[1]);
		return 1;
	}
	if (!strcmp(argv[2], "fill"))
		return fill(out, in, keys, bytes, value);
	for (long i = 0; i < rounds && !err; i++)
		err = read_back(out, in, keys, bytes, value, got);
	return err;
}
