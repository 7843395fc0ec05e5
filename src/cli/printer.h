/* SPDX-License-Identifier: MIT */
/*
 * What `kilroy print` shows, in two forms: text (print-text.c) and JSON (print-json.c). The command
 * picks the events; a printer turns them into lines. What is the same for all events of a type is
 * worked out once, when its first event comes.
 */
#ifndef KLY_CLI_PRINTER_H
#define KLY_CLI_PRINTER_H

#include "cli/out.h"
#include "log/reader.h"
#include "wire/fields.h"
#include "wire/types.h"

/* A format of an event's author, made safe: it holds one conversion, for a uint64_t, an int64_t or
 * a double. */
#define KLY_PRINT_FORMAT_MAX 16u

struct kly_print_field {
	struct kly_field field;
	const char *label; /* `name=` or `"name":`, escaped */
	size_t label_len;
	char format[KLY_PRINT_FORMAT_MAX]; /* empty: the usual one */
};

struct kly_print_type {
	bool kept;         /* the user wants these events */
	const char *label; /* the name, escaped */
	size_t label_len, columns;
	struct kly_print_field *fields;
	size_t field_count;
};

/* An event to print. Times are nanoseconds of CLOCK_REALTIME. */
struct kly_print_event {
	const struct kly_event *event;
	const struct kly_print_type *type;
	uint64_t time_ns;
};

struct kly_print_loss {
	uint64_t events;
	const char *cause;
	uint64_t begin_ns, end_ns;
};

/* START and FILTER hold a set of types, a bit each: those that are not recorded. False: something
 * else, or cut. */
bool kly_print_is_set(const struct kly_event *event);
/* The next type of the set from *type on; KLY_TYPES_MAX: there is none. */
uint32_t kly_print_set_next(const struct kly_event *event, uint32_t type);

struct kly_printer;

struct kly_printer_ops {
	bool json;
	void (*begin)(struct kly_printer *printer);
	void (*event)(struct kly_printer *printer, const struct kly_print_event *event);
	void (*loss)(struct kly_printer *printer, const struct kly_print_loss *loss);
};

extern const struct kly_printer_ops kly_print_text, kly_print_json;

/* The thread column, as it was last made for a thread. */
struct kly_print_thread {
	struct kly_wire_thread thread;
	uint8_t label_len, columns;
	char label[120];
};
#define KLY_PRINT_THREADS 256u /* a power of two */

struct kly_printer {
	const struct kly_printer_ops *ops;
	const struct kly_log_reader *log;
	uint64_t start_ns; /* of the log */
	bool colour;
	const char *const *keep; /* patterns; none: everything is kept */
	size_t keep_count;

	struct kly_print_type *types[KLY_TYPES_MAX]; /* NULL: not met yet */
	struct kly_print_thread threads[KLY_PRINT_THREADS];
	size_t name_columns, thread_columns;

	uint64_t minute_ns; /* begin of the minute that `minute` is of; a minute before 0: none yet */
	char minute[24];    /* what a time begins with: "14:03:" */

	/* print-text.c */
	bool any; /* an event was printed: last_ns is its time */
	uint64_t last_ns;
	int day; /* a number for each day; -1: none yet */

	struct kly_out out, scratch;
};

/* log, start_ns and what the user wants are the caller's to set. NULL: no memory. */
struct kly_printer *kly_printer_create(const struct kly_printer_ops *ops);
void kly_printer_destroy(struct kly_printer *printer);

/* What is known about a type. NULL: no memory. */
const struct kly_print_type *kly_printer_type(struct kly_printer *printer, uint16_t id);

/* The name of the event's thread; empty if nobody told it. At most 15 bytes. */
const char *kly_printer_thread_name(
	const struct kly_printer *printer, const struct kly_wire_thread *thread);

/* A value by its author's format, which must not be empty. */
void kly_print_formatted(
	struct kly_out *out, const struct kly_print_field *field, const struct kly_value *value);

/* As many digits as it needs to be the same number when it is read. */
void kly_print_float(struct kly_out *out, double f);

#endif
