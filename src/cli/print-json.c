/* SPDX-License-Identifier: MIT */
/*
 * Events as JSON Lines, an object each. The members, in this order:
 *
 *	time      "2026-11-30T13:03:22.123456789Z"
 *	ns        nanoseconds since the start of the log
 *	cpu       left out when it is not known
 *	pid, tid, thread
 *	event     the name
 *	address   "0x4011d0": where the program recorded it
 *	fields    {NAME: VALUE, ...}; integers and floats are numbers, pointers and bytes strings of
 *	          hex digits, floats that are no numbers strings; left out if the type has no fields
 *	          posix_trace_start and posix_trace_filter have {"filter": [NAME, ...]}
 *	data      hex digits: the payload, or the part of it that belongs to no field
 *	cut, late true, or left out
 *
 * A loss is {"time": ..., "ns": ..., "until_ns": ..., "lost": EVENTS, "cause": TEXT}.
 */
#include "cli/printer.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)

/* "time":"...","ns":N: the calendar is asked once a minute. */
static void put_time(struct kly_printer *printer, uint64_t time_ns)
{
	struct kly_out *out = &printer->out;
	struct tm tm;

	if (time_ns - printer->minute_ns >= MINUTE_NS) {
		time_t seconds = (time_t)(time_ns / SECOND_NS);
		if (!gmtime_r(&seconds, &tm))
			tm = (struct tm){.tm_year = 70, .tm_mday = 1};
		printer->minute_ns = time_ns - time_ns % MINUTE_NS;
		(void)strftime(printer->minute, sizeof(printer->minute), "%Y-%m-%dT%H:%M:", &tm);
	}
	kly_out_text(out, "{\"time\":\"");
	kly_out_text(out, printer->minute);
	kly_out_digits(out, (time_ns - printer->minute_ns) / SECOND_NS, 2);
	kly_out_char(out, '.');
	kly_out_digits(out, time_ns % SECOND_NS, 9);
	kly_out_text(out, "Z\",\"ns\":");
	kly_out_signed(out, (int64_t)(time_ns - printer->start_ns));
}

static void put_float(struct kly_out *out, double f)
{
	if (isfinite(f))
		kly_print_float(out, f);
	else
		kly_out_text(out, isnan(f) ? "\"nan\"" : f > 0 ? "\"inf\"" : "\"-inf\"");
}

static void put_hex_string(struct kly_out *out, const uint8_t *data, size_t len)
{
	kly_out_char(out, '"');
	kly_out_hex_bytes(out, data, len);
	kly_out_char(out, '"');
}

static void put_value(
	struct kly_out *out, const struct kly_print_field *field, const struct kly_value *value)
{
	switch (field->field.kind) {
	case KLY_FIELD_UNSIGNED:
		kly_out_unsigned(out, value->u);
		break;
	case KLY_FIELD_SIGNED:
		kly_out_signed(out, value->i);
		break;
	case KLY_FIELD_FLOAT:
		put_float(out, value->f);
		break;
	case KLY_FIELD_POINTER:
		kly_out_char(out, '"');
		kly_out_hex(out, value->u);
		kly_out_char(out, '"');
		break;
	case KLY_FIELD_STRING:
		kly_out_json(out, (const char *)value->data, value->len);
		break;
	case KLY_FIELD_BYTES:
		put_hex_string(out, value->data, value->len);
		break;
	}
}

static void put_set(struct kly_printer *printer, const struct kly_event *event)
{
	struct kly_out *out = &printer->out;
	char unknown_name[16];
	bool any = false;

	kly_out_text(out, ",\"fields\":{\"filter\":[");
	for (uint32_t type = 0; (type = kly_print_set_next(event, type)) < KLY_TYPES_MAX; type++) {
		const struct kly_log_type *known =
			kly_log_reader_type(printer->log, (uint16_t)type);

		(void)snprintf(unknown_name, sizeof(unknown_name), "type-%u", type);
		const char *name = known ? known->name : unknown_name;
		if (any)
			kly_out_char(out, ',');
		kly_out_json(out, name, strlen(name));
		any = true;
	}
	kly_out_text(out, "]}");
}

static void put_payload(struct kly_out *out, const struct kly_print_event *shown)
{
	const struct kly_print_type *type = shown->type;
	struct kly_payload payload = {shown->event->data, shown->event->len};
	struct kly_value value;

	if (type->field_count > 0) {
		kly_out_text(out, ",\"fields\":{");
		for (size_t i = 0; i < type->field_count; i++) {
			const struct kly_print_field *field = &type->fields[i];
			if (!kly_field_value(&field->field, &payload, &value))
				break;
			if (i > 0)
				kly_out_char(out, ',');
			kly_out_bytes(out, field->label, field->label_len);
			put_value(out, field, &value);
		}
		kly_out_char(out, '}');
	}
	if (payload.len > 0 || type->field_count == 0) {
		kly_out_text(out, ",\"data\":");
		put_hex_string(out, payload.data, payload.len);
	}
}

static void json_event(struct kly_printer *printer, const struct kly_print_event *shown)
{
	struct kly_out *out = &printer->out;
	const struct kly_event *event = shown->event;
	const char *thread = kly_printer_thread_name(printer, event->thread);

	put_time(printer, shown->time_ns);
	if (event->cpu != KLY_REC_NO_CPU) {
		kly_out_text(out, ",\"cpu\":");
		kly_out_unsigned(out, event->cpu);
	}
	kly_out_text(out, ",\"pid\":");
	kly_out_unsigned(out, event->thread->pid);
	kly_out_text(out, ",\"tid\":");
	kly_out_unsigned(out, event->thread->tid);
	kly_out_text(out, ",\"thread\":");
	kly_out_json(out, thread, strnlen(thread, sizeof(event->thread->name)));
	kly_out_text(out, ",\"event\":");
	kly_out_bytes(out, shown->type->label, shown->type->label_len);
	kly_out_text(out, ",\"address\":\"");
	kly_out_hex(out, event->address);
	kly_out_char(out, '"');
	if (kly_print_is_set(event))
		put_set(printer, event);
	else
		put_payload(out, shown);
	if (event->flags & KLY_EVENT_TRUNCATED)
		kly_out_text(out, ",\"cut\":true");
	if (event->flags & KLY_EVENT_LATE)
		kly_out_text(out, ",\"late\":true");
	kly_out_text(out, "}\n");
}

static void json_loss(struct kly_printer *printer, const struct kly_print_loss *loss)
{
	struct kly_out *out = &printer->out;

	put_time(printer, loss->begin_ns);
	kly_out_text(out, ",\"until_ns\":");
	kly_out_signed(out, (int64_t)(loss->end_ns - printer->start_ns));
	kly_out_text(out, ",\"lost\":");
	kly_out_unsigned(out, loss->events);
	kly_out_text(out, ",\"cause\":");
	kly_out_json(out, loss->cause, strlen(loss->cause));
	kly_out_text(out, "}\n");
}

static void json_begin(struct kly_printer *printer)
{
	(void)printer;
}

const struct kly_printer_ops kly_print_json = {
	.json = true,
	.begin = json_begin,
	.event = json_event,
	.loss = json_loss,
};
