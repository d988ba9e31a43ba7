// SPDX-License-Identifier: GPL-2.0
/*
 * The service manager's notification protocol: one datagram of text to the socket
 * that $NOTIFY_SOCKET names. It is stable and documented in sd_notify(3); done
 * here it saves the library and what that library needs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon.h"

void service_notify(const char *fmt, ...)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	char text[256];
	va_list ap;
	int fd, len;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len < 0 || len >= (int)sizeof(text))
		return;
	memcpy(to.sun_path, path, strlen(path));
	if (*path == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nothing depends on it: a manager that does not listen will say so itself. */
	(void)!sendto(fd, text, len, MSG_NOSIGNAL, (struct sockaddr *)&to,
		      offsetof(struct sockaddr_un, sun_path) + strlen(path));
	close(fd);
}
