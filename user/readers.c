// SPDX-License-Identifier: GPL-2.0
/* Both ends of the readers' socket: packets of one byte of kind and what belongs to it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "readers.h"

#define PACKET_BYTES	8192
#define REQUEST_BYTES	4096
#define MAX_READERS	8
#define MAX_GROUPS	256
#define READER_BYTES	(2UL << 30)	/* address space of what runs for a reader */
#define ACCEPT_AGAIN_US	100000
#define PAUSE_S		60		/* a reader who takes no output for so long has gone */

/* A failure is the class of an error and its words: how to print them the reader knows. */
enum { KIND_OUT = 'o', KIND_ERR = 'e', KIND_EXIT = 'x', KIND_FAILURE = 'f', KIND_STRANGER = 's' };

struct readers {
	pid_t pid;
	struct sockaddr_un at;
};

static void address(const struct tier_ctx *ctx, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(at->sun_path, sizeof(at->sun_path), "%s/readers", tier_ctx__run_dir(ctx));
}

static int send_packet(int fd, char kind, const void *data, size_t len)
{
	char packet[PACKET_BYTES];

	packet[0] = kind;
	memcpy(packet + 1, data, len);
	return send(fd, packet, len + 1, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- what may be asked ---- */

static bool word_in(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

int readers_allowed(int argc, char **argv, struct opts_error *error)
{
	const struct command *cmd = NULL;
	struct globals globals = { 0 };
	struct args args;
	int rest;

	if (opts_globals(argc, argv, &globals, &rest, error))
		return -EPERM;
	if (rest < argc)
		cmd = opts_command(tierctl_commands, argv[rest], error);
	else
		snprintf(error->message, sizeof(error->message), "no command given");
	if (!cmd || opts_parse(cmd, argc - rest, argv + rest, &globals, &args, error))
		return -EPERM;
	if (!cmd->readers) {
		snprintf(error->message, sizeof(error->message), "%s is for root alone", cmd->name);
		return -EPERM;
	}
	for (unsigned int i = 0; cmd->opts && cmd->opts[i].name; i++) {
		if (!args.opt[i].given || word_in(cmd->readers, cmd->opts[i].name))
			continue;
		snprintf(error->message, sizeof(error->message), "%s: --%s is for root alone",
			 cmd->name, cmd->opts[i].name);
		return -EPERM;
	}
	return 0;
}

/* ---- the daemon's end ---- */

static bool is_member(int fd, gid_t group)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	gid_t groups[MAX_GROUPS];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	if (!peer.uid || peer.gid == group)
		return true;
	len = sizeof(groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* Closed with something unread, a socket takes what was sent before with it. */
static void drain(int fd)
{
	char rest[256];

	shutdown(fd, SHUT_RD);
	while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
}

static void __attribute__((format(printf, 3, 4)))
refuse(int fd, enum tier_class class, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	text[0] = class;
	va_start(ap, fmt);
	vsnprintf(text + 1, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	drain(fd);
	send_packet(fd, KIND_FAILURE, text, strlen(text + 1) + 1);
}

/* One read's worth of the command's output on to the reader. False at its end. */
static bool pass_on(int from, int fd, char kind, bool *gone)
{
	char data[PACKET_BYTES - 1];
	ssize_t n = read(from, data, sizeof(data));

	*gone = n > 0 && send_packet(fd, kind, data, n);
	return n > 0 && !*gone;
}

static pid_t spawn(char **argv, int out, int err)
{
	static char *const env[] = {
		READER_ENV "=1", "LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL
	};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int failed;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return failed ? -1 : pid;
}

static void run_for(int fd, char **argv)
{
	int out[2], err[2], status = 0;
	bool end[2] = { false, false }, gone = false;
	char code;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return refuse(fd, TIER_CLASS_FAILED, "the daemon cannot make a pipe: %s",
			      strerror(errno));
	pid = spawn(argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (pid < 0)
		return refuse(fd, TIER_CLASS_FAILED, "the daemon cannot start the command");
	while (!end[0] || !end[1]) {
		struct pollfd polls[] = {
			{ end[0] ? -1 : out[0], POLLIN, 0 }, { end[1] ? -1 : err[0], POLLIN, 0 },
			{ fd, POLLRDHUP, 0 },
		};

		/* A reader that has gone ends a command that would go on for ever. */
		if (gone || poll(polls, 3, -1) < 0 || polls[2].revents) {
			kill(pid, SIGTERM);
			break;
		}
		if (polls[0].revents)
			end[0] = !pass_on(out[0], fd, KIND_OUT, &gone);
		if (!gone && polls[1].revents)
			end[1] = !pass_on(err[0], fd, KIND_ERR, &gone);
	}
	close(out[0]);
	close(err[0]);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return refuse(fd, TIER_CLASS_FAILED, "the command was ended by signal %d (%s)",
			      WTERMSIG(status), strsignal(WTERMSIG(status)));
	code = WEXITSTATUS(status);
	send_packet(fd, KIND_EXIT, &code, 1);
}

/* It runs as root, but is asked for by others: what it may cost has an end. */
static void set_limits(void)
{
	const struct rlimit memory = { READER_BYTES, READER_BYTES }, none = { 0, 0 };

	setpriority(PRIO_PROCESS, 0, 19);
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CORE, &none);
}

/* In a process of its own: receive, check, run. */
static void serve_one(int fd)
{
	const struct timeval patience = { .tv_sec = 5 }, pause = { .tv_sec = PAUSE_S };
	char request[REQUEST_BYTES + 1], *argv[MAX_WORDS + 1];
	struct opts_error error;
	int argc = 0;
	ssize_t len;

	set_limits();
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &pause, sizeof(pause));
	len = recv(fd, request, REQUEST_BYTES, MSG_TRUNC);
	if (len <= 0)
		return;
	if (len > REQUEST_BYTES)
		return refuse(fd, TIER_CLASS_USAGE, "the command line is too long for the daemon");
	request[len] = '\0';
	for (char *word = request; word < request + len; word += strlen(word) + 1) {
		if (argc == MAX_WORDS)
			return refuse(fd, TIER_CLASS_USAGE,
				      "more than %d words are too many for the daemon", MAX_WORDS);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	/* The parser sorts what it is given: hand it a copy of the list. */
	if (argc) {
		char *copy[MAX_WORDS + 1];

		memcpy(copy, argv, sizeof(copy));
		if (readers_allowed(argc, copy, &error))
			return refuse(fd, TIER_CLASS_PERMISSION, "%s", error.message);
		run_for(fd, argv);
	}
}

#define LISTEN_FD	3

/* The daemon's locks, maps and sockets are not this process's to hold. */
static void leave_daemon(int listen_fd)
{
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	if (listen_fd != LISTEN_FD)
		dup3(listen_fd, LISTEN_FD, O_CLOEXEC);
	close_range(LISTEN_FD + 1, ~0U, 0);
}

static void __attribute__((noreturn)) serve(int listen_fd, gid_t group)
{
	unsigned int running = 0;

	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC), err = errno;
		pid_t pid;

		while (waitpid(-1, NULL, WNOHANG) > 0)
			running--;
		if (fd < 0) {
			/* Out of descriptors or memory, it would fail again at once. */
			if (err != EINTR && err != ECONNABORTED)
				usleep(ACCEPT_AGAIN_US);
			continue;
		}
		if (!is_member(fd, group)) {
			drain(fd);
			send_packet(fd, KIND_STRANGER, "", 1);
		} else if (running >= MAX_READERS) {
			refuse(fd, TIER_CLASS_FAILED,
			       "the daemon serves %d readers already; try again", MAX_READERS);
		} else {
			pid = fork();
			if (!pid) {
				close(listen_fd);
				serve_one(fd);
				_exit(0);
			}
			if (pid < 0)
				refuse(fd, TIER_CLASS_FAILED, "the daemon cannot start the command");
			running += pid > 0;
		}
		close(fd);
	}
}

static int listen_at(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* What a daemon that was killed left; another one cannot be there. */
	unlink(at->sun_path);
	/* Whoever connects is looked at: the right is membership, not the file's mode. */
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) || chmod(at->sun_path, 0666) ||
	    listen(fd, MAX_READERS)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int readers__start(struct tierctl *t, const char *what, const char *group,
		   struct readers **result)
{
	struct group *entry = getgrnam(group);
	struct readers *readers;
	int fd;

	*result = NULL;
	if (!entry)
		return failure(t, TIER_CLASS_USAGE, "groupadd --system makes one.",
			       "%s: there is no group '%.80s'", what, group);
	readers = calloc(1, sizeof(*readers));
	if (!readers)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	address(t->ctx, &readers->at);
	/* A umask may have closed the directory to others. */
	chmod(tier_ctx__run_dir(t->ctx), 0755);
	fd = listen_at(&readers->at);
	readers->pid = fd < 0 ? -1 : fork();
	if (!readers->pid) {
		leave_daemon(fd);
		serve(LISTEN_FD, entry->gr_gid);
	}
	if (readers->pid < 0) {
		int err = fd < 0 ? -fd : errno;

		readers__stop(readers);
		return failure(t, TIER_CLASS_FAILED, "", "%s: serving readers at %s: %s", what,
			       readers->at.sun_path, strerror(err));
	}
	close(fd);
	*result = readers;
	return TIER_CLASS_OK;
}

void readers__stop(struct readers *readers)
{
	if (!readers)
		return;
	unlink(readers->at.sun_path);
	if (readers->pid > 0) {
		/* With it go the commands that it runs. */
		if (kill(-readers->pid, SIGTERM))
			kill(readers->pid, SIGTERM);
		waitpid(readers->pid, NULL, 0);
	}
	free(readers);
}

/* ---- the reader's end ---- */

static int ask(int fd, int argc, char **argv)
{
	char request[REQUEST_BYTES];
	size_t len = 0;

	for (int i = 0; i < argc; i++) {
		size_t word = strlen(argv[i]) + 1;

		if (len + word > sizeof(request))
			return -E2BIG;
		memcpy(request + len, argv[i], word);
		len += word;
	}
	return send(fd, request, len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * Print what comes. The exit code, -EPIPE if the daemon hung up before it, or -EACCES if
 * it does not read for us.
 */
static int print_answer(struct tierctl *t, int fd)
{
	char packet[PACKET_BYTES + 1];
	ssize_t n;

	for (;;) {
		n = recv(fd, packet, PACKET_BYTES, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 2)
			return -EPIPE;
		if (packet[0] == KIND_STRANGER)
			return -EACCES;
		if (packet[0] == KIND_FAILURE) {
			packet[n] = '\0';
			return failure(t, packet[1], "", "%s", packet + 2);
		}
		if (packet[0] == KIND_EXIT)
			return packet[1];
		if (fwrite(packet + 1, 1, n - 1, packet[0] == KIND_OUT ? stdout : stderr) !=
		    (size_t)n - 1 || (packet[0] == KIND_OUT && fflush(stdout)))
			return TIER_CLASS_FAILED;
	}
}

bool readers_ask(struct tierctl *t, int argc, char **argv, int *code)
{
	struct sockaddr_un at;
	int fd, err;

	address(t->ctx, &at);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	err = ask(fd, argc, argv);
	/* Refused before it was read: the answer is there. */
	if (!err || err == -EPIPE)
		err = print_answer(t, fd);
	close(fd);
	/* Much can be told without the daemon; what cannot says so, and how to be let in. */
	if (err == -EACCES)
		return false;
	if (err < 0)
		*code = failure(t, TIER_CLASS_FAILED, "Is the daemon being stopped?",
				"asking the daemon at %s: %s", at.sun_path, strerror(-err));
	else
		*code = err;
	return true;
}
