// SPDX-License-Identifier: GPL-2.0
/* The document as JSON: readable when it stands alone, one line in a stream. */
#include <errno.h>
#include <json-c/json.h>

#include "out/out.h"

int out_json__print(FILE *to, struct json_object *doc, bool stream)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text;

	flags |= stream ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	text = json_object_to_json_string_ext(doc, flags);
	if (!text)
		return -ENOMEM;
	return fprintf(to, "%s\n", text) < 0 ? -errno : 0;
}
