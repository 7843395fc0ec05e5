/* SPDX-License-Identifier: MIT */
/*
 * The fields of an event type (types.h): from field text to a list, and from a payload to values.
 * Both are input that may be anything.
 *
 *	const char *text = type->fields;
 *	struct kly_field field;
 *	struct kly_payload payload = {data, len};
 *	struct kly_value value;
 *	while (kly_field_next(&text, &field) > 0 && kly_field_value(&field, &payload, &value))
 *		show(&field, &value);
 *	show_rest(payload.data, payload.len);
 */
#ifndef KLY_WIRE_FIELDS_H
#define KLY_WIRE_FIELDS_H

#include "wire/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kly_field_kind {
	KLY_FIELD_UNSIGNED,
	KLY_FIELD_SIGNED,
	KLY_FIELD_FLOAT,
	KLY_FIELD_POINTER,
	KLY_FIELD_STRING,
	KLY_FIELD_BYTES,
};

struct kly_field {
	enum kly_field_kind kind;
	uint32_t size;    /* of the value; 0: a length comes first */
	const char *name; /* in the text: no NUL at its end */
	size_t name_len;
	const char *format; /* the same; empty: none */
	size_t format_len;
};

/* Reads the next line of *text and moves *text behind it: 1; 0: there is none; -EBADMSG: the line
 * is no field (*text stays). */
int kly_field_next(const char **text, struct kly_field *ret_field);

struct kly_payload {
	const uint8_t *data;
	size_t len;
};

struct kly_value {
	union {
		uint64_t u; /* KLY_FIELD_UNSIGNED, KLY_FIELD_POINTER */
		int64_t i;  /* KLY_FIELD_SIGNED */
		double f;   /* KLY_FIELD_FLOAT */
	};
	const uint8_t *data; /* KLY_FIELD_STRING, KLY_FIELD_BYTES: in the payload */
	size_t len;
	bool cut; /* the payload ends before this string or these bytes do */
};

/* Takes the field's value off the front of the payload. false: it is not whole there, the payload
 * stays; a string is whole if its length is. */
bool kly_field_value(
	const struct kly_field *field, struct kly_payload *payload, struct kly_value *ret_value);

#endif
