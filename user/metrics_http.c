// SPDX-License-Identifier: GPL-2.0
/* A small HTTP endpoint for metrics, by libmicrohttpd. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

struct metrics_http {
	struct MHD_Daemon *daemon;
	struct tier_ctx *ctx;	/* of the server's thread alone */
};

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int code, const char *type,
			     char *text, size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, text, mode);
	enum MHD_Result result;

	if (!r) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	result = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned int code, const char *text)
{
	return reply(c, code, "text/plain; charset=utf-8", (char *)text, strlen(text),
		     MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	struct metrics_http *http = data;
	const char *accept;
	bool open_metrics;
	size_t size;
	char *text;

	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	if (strcmp(url, "/metrics"))
		return say(c, MHD_HTTP_NOT_FOUND, "metrics are at /metrics\n");
	accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	open_metrics = accept && strstr(accept, "application/openmetrics-text");
	text = metrics_text(http->ctx, open_metrics ? OUT_OPENMETRICS : OUT_PROMETHEUS, &size);
	if (!text)
		return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "reading the counters failed\n");
	return reply(c, MHD_HTTP_OK, open_metrics ?
		     "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		     "text/plain; version=0.0.4; charset=utf-8", text, size, MHD_RESPMEM_MUST_FREE);
}

/* "PORT", "ADDR:PORT" or "[ADDR6]:PORT" with numeric addresses. */
static int parse_where(const char *where, struct sockaddr_storage *sa)
{
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
	const char *port = strrchr(where, ':');
	struct opts_error error;
	char host[64] = "127.0.0.1";
	__u64 number;

	if (port) {
		if (port - where >= (long)sizeof(host))
			return -EINVAL;
		snprintf(host, sizeof(host), "%.*s", (int)(port - where), where);
		port++;
	} else {
		port = where;
	}
	if (opts_number("port", port, 1, 65535, &number, &error))
		return -EINVAL;
	memset(sa, 0, sizeof(*sa));
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(number);
		return inet_pton(AF_INET6, host + 1, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(number);
	return inet_pton(AF_INET, *host ? host : "127.0.0.1", &in->sin_addr) == 1 ? 0 : -EINVAL;
}

int metrics_http__start(struct tierctl *t, const char *what, const char *where,
			struct metrics_http **result)
{
	struct sockaddr_storage sa;
	struct metrics_http *http;
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD;

	*result = NULL;
	if (parse_where(where, &sa))
		return failure(t, TIER_CLASS_USAGE, "Write PORT, ADDRESS:PORT or [ADDRESS]:PORT.",
			       "%s: '%.80s' is no numeric address and port", what, where);
	http = calloc(1, sizeof(*http));
	if (!http)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	http->ctx = tier_ctx__new(NULL);
	if (sa.ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	if (http->ctx)
		http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, http,
						MHD_OPTION_SOCK_ADDR, &sa,
						MHD_OPTION_CONNECTION_LIMIT, 16u,
						MHD_OPTION_CONNECTION_TIMEOUT, 10u,
						MHD_OPTION_END);
	if (!http->daemon) {
		int err = errno;

		metrics_http__stop(http);
		return failure(t, err == EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_FAILED,
			       "Is the port taken? ss -ltnp shows by whom.",
			       "listening on %.80s: %s", where, strerror(err ? err : EIO));
	}
	*result = http;
	return TIER_CLASS_OK;
}

void metrics_http__stop(struct metrics_http *http)
{
	if (!http)
		return;
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	tier_ctx__free(http->ctx);
	free(http);
}
