/* SPDX-License-Identifier: MIT */
/*
 * Events as text, a line each:
 *
 *	# kilroy log of ./server -p 80, pid 1234
 *	# 2026-11-30 +0100
 *	14:03:22.123456789            -   3 worker-1        1234/1240 request.done id=7 path="/a"
 *	14:03:22.123458023 +0.000001234   3 worker-1        1234/1240 noted         6f6e650a |one.|
 *
 * Lines that are no event begin with a `#`. A payload without fields of more than 16 bytes goes on
 * in lines of its own. This is where the time of `kilroy print` is spent: no printf for an event.
 */
#include "cli/printer.h"

#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define DUMP_LINE 16u
#define PROCESSES_SHOWN 16u

#define COLOUR_END "\033[0m"
#define COLOUR_TIME "\033[2m"
#define COLOUR_THREAD "\033[36m"
#define COLOUR_EVENT "\033[1m"
#define COLOUR_NOTE "\033[33m"

static void put_colour(struct kly_printer *printer, const char *colour)
{
	if (printer->colour)
		kly_out_text(&printer->out, colour);
}

/* A line that is no event: between begin_note() and end_note(). */
static void begin_note(struct kly_printer *printer)
{
	put_colour(printer, COLOUR_NOTE);
	kly_out_text(&printer->out, "# ");
}

static void end_note(struct kly_printer *printer)
{
	put_colour(printer, COLOUR_END);
	kly_out_char(&printer->out, '\n');
}

/*
 * Time. The calendar is asked once a minute; the offset of local time never changes within one.
 */

static KLY_COLD void new_minute(struct kly_printer *printer, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / SECOND_NS);
	struct tm tm;
	char text[64];

	if (!localtime_r(&seconds, &tm))
		tm = (struct tm){.tm_year = 70};
	printer->minute_ns = time_ns - time_ns % SECOND_NS - (uint64_t)tm.tm_sec * SECOND_NS;
	(void)strftime(printer->minute, sizeof(printer->minute), "%H:%M:", &tm);

	int day = 366 * tm.tm_year + tm.tm_yday;
	if (printer->day != day) {
		begin_note(printer);
		(void)strftime(text, sizeof(text), "%Y-%m-%d %z", &tm);
		kly_out_text(&printer->out, text);
		end_note(printer);
		printer->day = day;
	}
}

/* Before the first byte of a line: a new day has a line of its own. */
static inline void turn_clock(struct kly_printer *printer, uint64_t time_ns)
{
	if (KLY_UNLIKELY(time_ns - printer->minute_ns >= MINUTE_NS))
		new_minute(printer, time_ns);
}

static inline void put_time(struct kly_printer *printer, uint64_t time_ns)
{
	struct kly_out *out = &printer->out;
	uint64_t since_ns = time_ns - printer->minute_ns;

	kly_out_bytes(out, printer->minute, 6);
	kly_out_digits(out, since_ns / SECOND_NS, 2);
	kly_out_char(out, '.');
	kly_out_digits(out, since_ns % SECOND_NS, 9);
}

static inline void put_delta(struct kly_printer *printer, uint64_t time_ns)
{
	struct kly_out *out = &printer->out;
	uint64_t delta_ns = time_ns - printer->last_ns;

	if (!printer->any) {
		kly_out_text(out, "            -");
	} else {
		kly_out_text(out, " +");
		kly_out_unsigned(out, delta_ns / SECOND_NS);
		kly_out_char(out, '.');
		kly_out_digits(out, delta_ns % SECOND_NS, 9);
	}
	printer->any = true;
	printer->last_ns = time_ns;
}

/*
 * Threads. The column is made once for a thread, as long as its name stays.
 */

static KLY_COLD void make_thread(struct kly_printer *printer, struct kly_print_thread *made)
{
	struct kly_out *out = &printer->scratch;
	const char *name = kly_printer_thread_name(printer, &made->thread);
	size_t columns = kly_out_escaped(out, name, strnlen(name, sizeof(made->thread.name)), 0);

	if (columns < sizeof(made->thread.name) - 1)
		kly_out_pad(out, sizeof(made->thread.name) - 1 - columns);
	kly_out_char(out, ' ');
	size_t before = out->used;
	kly_out_unsigned(out, made->thread.pid);
	kly_out_char(out, '/');
	kly_out_unsigned(out, made->thread.tid);
	made->columns = (uint8_t)(out->used - before);
	made->label_len = (uint8_t)out->used;
	memcpy(made->label, out->bytes, out->used);
	out->used = 0;
}

static inline void put_thread(struct kly_printer *printer, const struct kly_wire_thread *thread)
{
	struct kly_print_thread *made = &printer->threads[thread->tid % KLY_PRINT_THREADS];

	if (KLY_UNLIKELY(
		    !made->label_len || memcmp(&made->thread, thread, sizeof(made->thread)) != 0)) {
		made->thread = *thread;
		make_thread(printer, made);
	}
	if (printer->thread_columns < made->columns)
		printer->thread_columns = made->columns;
	put_colour(printer, COLOUR_THREAD);
	kly_out_bytes(&printer->out, made->label, made->label_len);
	put_colour(printer, COLOUR_END);
	kly_out_pad(&printer->out, printer->thread_columns - made->columns + 1);
}

/*
 * Payloads
 */

static inline void put_value(
	struct kly_out *out, const struct kly_print_field *field, const struct kly_value *value)
{
	if (field->format[0]) {
		kly_print_formatted(out, field, value);
		return;
	}
	switch (field->field.kind) {
	case KLY_FIELD_UNSIGNED:
		kly_out_unsigned(out, value->u);
		break;
	case KLY_FIELD_SIGNED:
		kly_out_signed(out, value->i);
		break;
	case KLY_FIELD_FLOAT:
		kly_print_float(out, value->f);
		break;
	case KLY_FIELD_POINTER:
		kly_out_hex(out, value->u);
		break;
	case KLY_FIELD_STRING:
		kly_out_char(out, '"');
		(void)kly_out_escaped(out, (const char *)value->data, value->len, '"');
		kly_out_char(out, '"');
		break;
	case KLY_FIELD_BYTES:
		kly_out_char(out, '[');
		kly_out_hex_bytes(out, value->data, value->len);
		kly_out_char(out, ']');
		break;
	}
}

/* Bytes in groups of four, then as text. */
static void put_dump_line(struct kly_out *out, const uint8_t *data, size_t len, size_t columns)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i += 4) {
		size_t n = kly_min(4, len - i);
		kly_out_char(out, ' ');
		kly_out_hex_bytes(out, data + i, n);
		used += 1 + 2 * n;
	}
	kly_out_pad(out, columns > used ? columns - used : 0);
	kly_out_text(out, " |");
	for (size_t i = 0; i < len; i++)
		kly_out_char(out, data[i] >= ' ' && data[i] < 127 ? (char)data[i] : '.');
	kly_out_char(out, '|');
}

static void put_dump(struct kly_out *out, const uint8_t *data, size_t len)
{
	if (len <= DUMP_LINE) {
		put_dump_line(out, data, len, 0);
		return;
	}
	kly_out_char(out, ' ');
	kly_out_unsigned(out, len);
	kly_out_text(out, " bytes");
	for (size_t i = 0; i < len; i += DUMP_LINE) {
		kly_out_text(out, "\n\t");
		kly_out_digits(out, i, 5);
		put_dump_line(out, data + i, kly_min(DUMP_LINE, len - i), DUMP_LINE / 4 * 9);
	}
}

static void put_payload(struct kly_out *out, const struct kly_print_event *shown)
{
	const struct kly_print_type *type = shown->type;
	struct kly_payload payload = {shown->event->data, shown->event->len};
	struct kly_value value;

	for (size_t i = 0; i < type->field_count; i++) {
		const struct kly_print_field *field = &type->fields[i];
		if (!kly_field_value(&field->field, &payload, &value))
			break;
		kly_out_bytes(out, field->label, field->label_len);
		put_value(out, field, &value);
	}
	if (payload.len > 0)
		put_dump(out, payload.data, payload.len);
}

static void text_event(struct kly_printer *printer, const struct kly_print_event *shown)
{
	struct kly_out *out = &printer->out;
	const struct kly_event *event = shown->event;
	const struct kly_print_type *type = shown->type;

	turn_clock(printer, shown->time_ns);
	put_colour(printer, COLOUR_TIME);
	put_time(printer, shown->time_ns);
	put_delta(printer, shown->time_ns);
	put_colour(printer, COLOUR_END);
	if (event->cpu == KLY_REC_NO_CPU) {
		kly_out_text(out, "   - ");
	} else {
		kly_out_right(out, event->cpu, 4);
		kly_out_char(out, ' ');
	}
	put_thread(printer, event->thread);
	put_colour(printer, COLOUR_EVENT);
	kly_out_bytes(out, type->label, type->label_len);
	put_colour(printer, COLOUR_END);
	if (event->len > 0) {
		if (type->columns < printer->name_columns)
			kly_out_pad(out, printer->name_columns - type->columns);
		put_payload(out, shown);
	}
	if (event->flags & KLY_EVENT_TRUNCATED)
		kly_out_text(out, " (cut)");
	if (event->flags & KLY_EVENT_LATE)
		kly_out_text(out, " (late)");
	kly_out_char(out, '\n');
}

static void text_loss(struct kly_printer *printer, const struct kly_print_loss *loss)
{
	struct kly_out *out = &printer->out;

	turn_clock(printer, loss->begin_ns);
	begin_note(printer);
	kly_out_text(out, "lost ");
	kly_out_unsigned(out, loss->events);
	kly_out_text(out, loss->events == 1 ? " event" : " events");
	if (loss->end_ns != loss->begin_ns) {
		kly_out_text(out, " within ");
		kly_out_unsigned(out, (loss->end_ns - loss->begin_ns) / SECOND_NS);
		kly_out_char(out, '.');
		kly_out_digits(out, (loss->end_ns - loss->begin_ns) % SECOND_NS, 9);
		kly_out_text(out, " s from ");
	} else {
		kly_out_text(out, " at ");
	}
	put_time(printer, loss->begin_ns);
	kly_out_text(out, ": ");
	kly_out_text(out, loss->cause);
	end_note(printer);
}

/* The arguments as the shell would nearly take them: a space for each NUL. */
static void put_arguments(struct kly_out *out, const struct kly_log_process *process)
{
	size_t len = process->args_bytes;

	if (len == 0) {
		(void)kly_out_escaped(out, process->exe, strlen(process->exe), 0);
		return;
	}
	for (size_t i = 0; i < len;) {
		size_t n = strnlen(process->args + i, len - i);
		if (i > 0)
			kly_out_char(out, ' ');
		(void)kly_out_escaped(out, process->args + i, n, 0);
		i += n + 1;
	}
}

static void text_begin(struct kly_printer *printer)
{
	const struct kly_log_process *processes;
	size_t count = kly_log_reader_processes(printer->log, &processes);

	/* Long names would push the fields of all others out of sight. */
	for (unsigned id = 0; id < KLY_TYPES_MAX; id++) {
		const struct kly_log_type *type = kly_log_reader_type(printer->log, (uint16_t)id);
		size_t len = type ? strlen(type->name) : 0;
		if (len <= 32 && len > printer->name_columns)
			printer->name_columns = len;
	}
	for (size_t i = 0; i < kly_min(count, PROCESSES_SHOWN); i++) {
		begin_note(printer);
		kly_out_text(&printer->out, "kilroy log of ");
		put_arguments(&printer->out, &processes[i]);
		kly_out_text(&printer->out, ", pid ");
		kly_out_unsigned(&printer->out, processes[i].pid);
		end_note(printer);
	}
	if (count > PROCESSES_SHOWN) {
		begin_note(printer);
		kly_out_text(&printer->out, "and of ");
		kly_out_unsigned(&printer->out, count - PROCESSES_SHOWN);
		kly_out_text(&printer->out, " processes more");
		end_note(printer);
	}
}

const struct kly_printer_ops kly_print_text = {
	.begin = text_begin,
	.event = text_event,
	.loss = text_loss,
};
