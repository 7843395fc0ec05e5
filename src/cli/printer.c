/* SPDX-License-Identifier: MIT */
#include "cli/printer.h"

#include <ctype.h>
#include <stdio.h>

#include "base/glob.h"

struct kly_printer *kly_printer_create(const struct kly_printer_ops *ops)
{
	struct kly_printer *printer = calloc(1, sizeof(*printer));

	if (!printer)
		return NULL;
	printer->ops = ops;
	printer->minute_ns = -UINT64_C(60000000000); /* a minute before any time */
	printer->day = -1;
	kly_out_init(&printer->out, STDOUT_FILENO);
	kly_out_init(&printer->scratch, -1);
	return printer;
}

static void destroy_type(struct kly_print_type *type)
{
	if (!type)
		return;
	for (size_t i = 0; i < type->field_count; i++)
		free((char *)type->fields[i].label);
	free(type->fields);
	free((char *)type->label);
	free(type);
}

static void destroy_typep(struct kly_print_type **type)
{
	destroy_type(*type);
}

void kly_printer_destroy(struct kly_printer *printer)
{
	if (!printer)
		return;
	for (size_t i = 0; i < KLY_TYPES_MAX; i++)
		destroy_type(printer->types[i]);
	free(printer);
}

/*
 * Formats. A log's author is not trusted: only a conversion that fits the field is taken, and only
 * with small widths, so that it fits the room of an output buffer. Length modifiers are replaced,
 * because values come as 64 bits whatever the author's C type was.
 */

static bool is_integer(const struct kly_field *field)
{
	return field->kind == KLY_FIELD_UNSIGNED || field->kind == KLY_FIELD_SIGNED;
}

/* Copies digits, at most two; false: there are more. */
static bool copy_digits(const char **from, const char *end, char **to)
{
	const char *limit = *from + 2;

	while (*from < end && isdigit((unsigned char)**from)) {
		if (*from == limit)
			return false;
		*(*to)++ = *(*from)++;
	}
	return true;
}

static bool copy_format(const struct kly_field *field, char to[KLY_PRINT_FORMAT_MAX])
{
	const char *from = field->format, *end = from + field->format_len;
	const char *letters = is_integer(field) ? "diuxXo" : "eEfFgGaA";

	if (from == end || *from++ != '%')
		return false;
	*to++ = '%';
	for (int flags = 0; from < end && strchr("-+ #0", *from); flags++) {
		if (flags == 5)
			return false;
		*to++ = *from++;
	}
	if (!copy_digits(&from, end, &to))
		return false;
	if (from < end && *from == '.') {
		*to++ = *from++;
		if (!copy_digits(&from, end, &to))
			return false;
	}
	while (from < end && strchr("hljztL", *from))
		from++;
	if (end - from != 1 || !strchr(letters, *from))
		return false;
	if (is_integer(field))
		*to++ = 'l';
	*to++ = *from;
	*to = 0;
	return true;
}

static void set_format(struct kly_print_field *shown)
{
	const struct kly_field *field = &shown->field;

	shown->format[0] = 0;
	if (!is_integer(field) && field->kind != KLY_FIELD_FLOAT)
		return;
	if (!copy_format(field, shown->format))
		shown->format[0] = 0;

	/* What these say is done by hand. */
	const char *usual = field->kind == KLY_FIELD_SIGNED ? "%ld" : "%lu";
	if (strcmp(shown->format, usual) == 0)
		shown->format[0] = 0;
}

void kly_print_formatted(
	struct kly_out *out, const struct kly_print_field *field, const struct kly_value *value)
{
	const char *format = field->format;
	char *room = kly_out_room(out);
	uint64_t u = value->u;
	int n;

	if (field->field.kind == KLY_FIELD_FLOAT) {
		n = snprintf(room, KLY_OUT_ROOM_MAX, format, value->f);
	} else {
		char letter = format[strlen(format) - 1];
		if (letter != 'd' && letter != 'i' && field->field.size < 8)
			u &= (UINT64_C(1) << 8 * field->field.size) - 1;
		n = snprintf(room, KLY_OUT_ROOM_MAX, format, u);
	}
	if (n > 0)
		out->used += kly_min((uint64_t)n, KLY_OUT_ROOM_MAX - 1);
}

void kly_print_float(struct kly_out *out, double f)
{
	char *room = kly_out_room(out);

	int n = snprintf(room, KLY_OUT_ROOM_MAX, "%.15g", f);
	if (strtod(room, NULL) != f)
		n = snprintf(room, KLY_OUT_ROOM_MAX, "%.17g", f);
	out->used += (size_t)n;
}

/*
 * Types
 */

bool kly_print_is_set(const struct kly_event *event)
{
	return (event->type == KLY_TYPE_START || event->type == KLY_TYPE_FILTER) &&
	       event->len == KLY_TYPES_MAX / 8;
}

uint32_t kly_print_set_next(const struct kly_event *event, uint32_t type)
{
	const uint8_t *set = event->data;

	while (type < KLY_TYPES_MAX && !(set[type / 8] >> type % 8 & 1))
		type++;
	return type;
}

/* A copy of what is in the scratch buffer. */
static char *take_scratch(struct kly_out *scratch, size_t *ret_len)
{
	char *text = malloc(scratch->used + 1);

	if (!text)
		return NULL;
	memcpy(text, scratch->bytes, scratch->used);
	text[scratch->used] = 0;
	*ret_len = scratch->used;
	scratch->used = 0;
	return text;
}

static bool add_field(
	struct kly_printer *printer, struct kly_print_type *type, const struct kly_field *field)
{
	struct kly_print_field *fields =
		reallocarray(type->fields, type->field_count + 1, sizeof(*fields));

	if (!fields)
		return false;
	type->fields = fields;

	struct kly_print_field *shown = &fields[type->field_count];
	*shown = (struct kly_print_field){.field = *field};
	set_format(shown);

	struct kly_out *out = &printer->scratch;
	if (printer->ops->json) {
		kly_out_json(out, field->name, field->name_len);
		kly_out_char(out, ':');
	} else {
		kly_out_char(out, ' ');
		(void)kly_out_escaped(out, field->name, field->name_len, 0);
		kly_out_char(out, '=');
	}
	shown->label = take_scratch(out, &shown->label_len);
	if (!shown->label)
		return false;
	type->field_count++;
	return true;
}

static bool is_kept(const struct kly_printer *printer, const char *name)
{
	for (size_t i = 0; i < printer->keep_count; i++)
		if (kly_glob_match(printer->keep[i], name))
			return true;
	return printer->keep_count == 0;
}

static struct kly_print_type *make_type(struct kly_printer *printer, uint16_t id)
{
	kly_cleanup(destroy_typep) struct kly_print_type *type = calloc(1, sizeof(*type));
	const struct kly_log_type *known = kly_log_reader_type(printer->log, id);
	char unknown_name[16];
	struct kly_out *out = &printer->scratch;

	if (!type)
		return NULL;
	(void)snprintf(unknown_name, sizeof(unknown_name), "type-%u", id);
	const char *name = known ? known->name : unknown_name;
	type->kept = is_kept(printer, name);

	if (printer->ops->json)
		kly_out_json(out, name, strlen(name));
	else
		type->columns = kly_out_escaped(out, name, strlen(name), 0);
	type->label = take_scratch(out, &type->label_len);
	if (!type->label)
		return NULL;

	/* Behind a line that is no field nothing can be told apart: the rest is shown as bytes. */
	const char *text = known ? known->fields : "";
	struct kly_field field;
	while (kly_field_next(&text, &field) > 0)
		if (!add_field(printer, type, &field))
			return NULL;
	return KLY_TAKE(type);
}

const struct kly_print_type *kly_printer_type(struct kly_printer *printer, uint16_t id)
{
	struct kly_print_type **type = &printer->types[id % KLY_TYPES_MAX];

	if (KLY_UNLIKELY(!*type))
		*type = make_type(printer, id);
	return *type;
}

const char *kly_printer_thread_name(
	const struct kly_printer *printer, const struct kly_wire_thread *thread)
{
	if (thread->name[0])
		return thread->name;

	const struct kly_wire_thread *later =
		kly_log_reader_thread(printer->log, thread->pid, thread->tid);
	return later ? later->name : "";
}
