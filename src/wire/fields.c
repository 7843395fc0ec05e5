/* SPDX-License-Identifier: MIT */
#include "wire/fields.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

static const struct {
	const char *name;
	enum kly_field_kind kind;
	uint32_t size;
} field_types[] = {
	{"u8", KLY_FIELD_UNSIGNED, 1},
	{"u16", KLY_FIELD_UNSIGNED, 2},
	{"u32", KLY_FIELD_UNSIGNED, 4},
	{"u64", KLY_FIELD_UNSIGNED, 8},
	{"i8", KLY_FIELD_SIGNED, 1},
	{"i16", KLY_FIELD_SIGNED, 2},
	{"i32", KLY_FIELD_SIGNED, 4},
	{"i64", KLY_FIELD_SIGNED, 8},
	{"f64", KLY_FIELD_FLOAT, 8},
	{"ptr", KLY_FIELD_POINTER, 8},
	{"str", KLY_FIELD_STRING, 0},
	{"bytes", KLY_FIELD_BYTES, 0},
};

static bool find_type(const char *name, size_t len, struct kly_field *field)
{
	for (size_t i = 0; i < KLY_COUNT(field_types); i++) {
		if (strlen(field_types[i].name) != len ||
			memcmp(field_types[i].name, name, len) != 0)
			continue;
		field->kind = field_types[i].kind;
		field->size = field_types[i].size;
		return true;
	}
	return false;
}

int kly_field_next(const char **text, struct kly_field *ret_field)
{
	const char *line = *text, *end = strchrnul(line, '\n');
	struct kly_field field;

	if (!*line)
		return 0;

	size_t type_len = strcspn(line, " \n");
	if (line[type_len] != ' ' || !find_type(line, type_len, &field))
		return -EBADMSG;

	field.name = line + type_len + 1;
	field.name_len = strcspn(field.name, " \n");
	if (field.name_len == 0)
		return -EBADMSG;

	field.format = field.name + field.name_len;
	field.format += *field.format == ' ';
	field.format_len = (size_t)(end - field.format);

	*ret_field = field;
	*text = end + (*end == '\n');
	return 1;
}

/* Copies of constant size are loads. Little endian: the low bytes come first. */
static uint64_t load(const uint8_t *data, uint32_t size)
{
	uint64_t value = 0;

	switch (size) {
	case 1:
		return *data;
	case 2:
		memcpy(&value, data, 2);
		break;
	case 4:
		memcpy(&value, data, 4);
		break;
	case 8:
		memcpy(&value, data, 8);
		break;
	}
	return value;
}

static void sign_extend(struct kly_value *value, uint32_t size)
{
	unsigned unused_bits = 64 - 8 * size;

	value->i = (int64_t)(value->u << unused_bits) >> unused_bits;
}

bool kly_field_value(
	const struct kly_field *field, struct kly_payload *payload, struct kly_value *ret_value)
{
	struct kly_value value = {.u = 0};
	uint16_t len;

	if (field->size == 0) {
		if (payload->len < sizeof(len))
			return false;
		len = (uint16_t)load(payload->data, sizeof(len));
		value.data = payload->data + sizeof(len);
		value.len = kly_min(len, payload->len - sizeof(len));
		value.cut = value.len < len;
		payload->data += sizeof(len) + value.len;
		payload->len -= sizeof(len) + value.len;
		*ret_value = value;
		return true;
	}

	if (payload->len < field->size)
		return false;
	value.u = load(payload->data, field->size);
	if (field->kind == KLY_FIELD_SIGNED)
		sign_extend(&value, field->size);
	payload->data += field->size;
	payload->len -= field->size;
	*ret_value = value;
	return true;
}
