/* SPDX-License-Identifier: MIT */
/*
 * <kilroy/trace.h>: event types with fields, and trace streams of the own process.
 *
 *	#include <kilroy/trace.h>
 *
 *	KILROY_EVENT(request_done, "server.request.done",
 *		(u64, id), (i32, status, "%d"), (f64, ms), (str, path), (bytes, body));
 *
 *	KILROY_RECORD(request_done, id, status, ms, path, body, body_bytes);
 *
 * KILROY_EVENT() stands where a function may be defined; in a header too: each file that includes
 * it then has a descriptor of its own, and all descriptors with one name are one event type. The
 * name, a string literal of 1 to 255 bytes, is what tools show and filter by; dotted names, from
 * the general to the special, filter well. Up to 12 fields follow, each (TYPE, NAME) or
 * (TYPE, NAME, FORMAT), where FORMAT is one printf conversion for tools to show the value with:
 *
 *	TYPE               argument of KILROY_RECORD()
 *	u8 u16 u32 u64     uint8_t ... uint64_t
 *	i8 i16 i32 i64     int8_t ... int64_t
 *	f64                double
 *	ptr                const void *
 *	str                const char *; NULL is recorded as "(null)"
 *	bytes              two: const void *, size_t; NULL is recorded as no bytes
 *
 * A name, once released, keeps its fields; new ones are added at the end. Types and names of fields
 * must not be macros.
 *
 * KILROY_RECORD() is async-signal-safe, keeps errno, and returns nothing: an event that finds no
 * room is counted as lost, never waited for. Its arguments are evaluated only if somebody wants the
 * event; else it costs two loads and a branch. Strings and bytes are copied straight to where the
 * event is kept; beyond 65535 bytes they are cut, and so is what exceeds the stream's max_data.
 *
 * Where nobody has asked, a function of this header is not async-signal-safe. Functions that can
 * fail return a negative error number; what they return through ret_ parameters is then untouched.
 */
#ifndef KILROY_TRACE_H
#define KILROY_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#define KILROY_STATIC_ASSERT static_assert
#else
#define KILROY_STATIC_ASSERT _Static_assert
#endif

#define KILROY_NOTHROW __attribute__((nothrow))
#define KILROY_INLINE __attribute__((always_inline, unused)) static inline

/* The version of the library that is loaded, "0.1.0". Async-signal-safe. */
const char *kilroy_version(void) KILROY_NOTHROW;

/*
 * Event types
 */

/*
 * A descriptor, made by KILROY_EVENT(). word points to the type's enable word in this process:
 * 1 = nobody wants it; anything else = call. It starts at a word that is always 0, so the first
 * call is made; that call registers the name, stores id and then moves word. Nothing else changes.
 * The library copies what it needs: a plug-in may be unloaded.
 */
struct kilroy_event_type {
	const uint64_t *word; /* atomic */
	uint32_t id;          /* atomic; 0 until registered */
	uint32_t flags;       /* 0; a later form of this struct says so here */
	const char *name;
	const char *fields; /* a line each: "TYPE NAME[ FORMAT]\n" */
};

/* A piece of a payload. */
struct kilroy_part {
	const void *data;
	size_t len;
};

extern const uint64_t kilroy_unknown_word;

/*
 * Record an event: what KILROY_RECORD() calls when the word is not 1. The payload is the fields in
 * their order without padding, in native byte order; str and bytes are a uint16_t length and as
 * many bytes. The event's address is the place of the call. Async-signal-safe; errno is kept.
 * kilroy_record_parts() takes the payload in up to 25 pieces, of which any may be empty.
 */
void kilroy_record(struct kilroy_event_type *type, const void *data, size_t len) KILROY_NOTHROW;
void kilroy_record_parts(struct kilroy_event_type *type, const struct kilroy_part *parts,
	unsigned count) KILROY_NOTHROW;

/* The descriptor of an event, and whether somebody wants it: for values that are dear to compute.
 * May be true once before the type is known. */
#define KILROY_TYPE(event) (&kilroy_type_##event)
#define KILROY_ENABLED(event) kilroy_enabled(&kilroy_type_##event)

/*
 * Order: both loads are relaxed. The second depends on the first; a stale word records one event
 * more or less, and kilroy_record() looks again.
 */
KILROY_INLINE int kilroy_enabled(const struct kilroy_event_type *type)
{
	const uint64_t *word = __atomic_load_n(&type->word, __ATOMIC_RELAXED);

	return __builtin_expect(__atomic_load_n(word, __ATOMIC_RELAXED) != 1, 0) != 0;
}

/*
 * How the macros work
 *
 * KILROY_EVENT(done, "a.done", (u64, id), (str, path)) becomes, but for names,
 *
 *	struct payload { uint64_t id; uint16_t path; char end; };        packed
 *	static struct kilroy_event_type type = {..., "a.done", "u64 id\n" "str path\n"};
 *	static inline void pack(struct kilroy_event_type *type, uint64_t id_, const char *path_)
 *	{
 *		struct payload payload;
 *		struct kilroy_part part[1 + 2], *open = part;
 *		open->data = &payload;
 *		payload.id = id_;
 *		path_ = path_ ? path_ : "(null)";
 *		payload.path = kilroy_length(strlen(path_));
 *		open = kilroy_split(open, &payload.path, path_, payload.path);
 *		kilroy_record or, if there is a str or bytes, kilroy_record_parts
 *	}
 *
 * The packed struct is the payload without the contents of str and bytes, which have only their
 * lengths there. Parts thread it and the contents together: a run of the struct up to and with a
 * length, the content, the next run ... So the stack holds at most 96 bytes of payload, no content
 * is copied twice, and without str and bytes the length is a constant.
 *
 * KILROY_EACH_n(m, f1 .. fn, ~) applies macro m to n fields; the count of arguments picks n. Each m
 * gets (type, name, ...) and looks up KILROY_KIND_type when types are treated differently. Lists
 * carry a ~ at their end, since C11 and C++17 want an argument for every `...`.
 *
 * The function is always inlined: only so is the address recorded that of the caller, and only so
 * do debug builds keep it.
 */
/* clang-format off */

typedef uint8_t kilroy_field_u8;
typedef uint16_t kilroy_field_u16;
typedef uint32_t kilroy_field_u32;
typedef uint64_t kilroy_field_u64;
typedef int8_t kilroy_field_i8;
typedef int16_t kilroy_field_i16;
typedef int32_t kilroy_field_i32;
typedef int64_t kilroy_field_i64;
typedef double kilroy_field_f64;
typedef const void *kilroy_field_ptr;
typedef uint16_t kilroy_field_str;   /* the length */
typedef uint16_t kilroy_field_bytes; /* the length */

#define KILROY_KIND_u8 VALUE
#define KILROY_KIND_u16 VALUE
#define KILROY_KIND_u32 VALUE
#define KILROY_KIND_u64 VALUE
#define KILROY_KIND_i8 VALUE
#define KILROY_KIND_i16 VALUE
#define KILROY_KIND_i32 VALUE
#define KILROY_KIND_i64 VALUE
#define KILROY_KIND_f64 VALUE
#define KILROY_KIND_ptr VALUE
#define KILROY_KIND_str STR
#define KILROY_KIND_bytes BYTES

KILROY_STATIC_ASSERT(sizeof(void *) == 8, "a ptr field has 8 bytes");

#define KILROY_EVENT(...) \
	KILROY_EVENT_(KILROY_CAT(KILROY_EACH_, KILROY_FIELD_COUNT(__VA_ARGS__)), __VA_ARGS__, ~)

/* The struct comes first, so that a wrong type is reported as an unknown kilroy_field_TYPE. The
 * initialiser is without names because C++17 has none. */
#define KILROY_EVENT_(each, event, name_, ...) \
	struct kilroy_payload_##event { \
		each(KILROY_MEMBER, __VA_ARGS__) \
		char kilroy_end; \
	} __attribute__((packed)); \
	__attribute__((unused)) static struct kilroy_event_type kilroy_type_##event = { \
		&kilroy_unknown_word, 0, 0, "" name_, "" each(KILROY_LINE, __VA_ARGS__)}; \
	KILROY_INLINE void kilroy_pack_##event( \
		struct kilroy_event_type *kilroy_type each(KILROY_PARAMETER, __VA_ARGS__)) \
	{ \
		__attribute__((aligned(8))) struct kilroy_payload_##event kilroy_payload; \
		struct kilroy_part kilroy_part[1 each(KILROY_PARTS, __VA_ARGS__)]; \
		struct kilroy_part *kilroy_open = kilroy_part; \
		kilroy_open->data = &kilroy_payload; \
		kilroy_payload.kilroy_end = 0; \
		each(KILROY_STORE, __VA_ARGS__) \
		kilroy_finish(kilroy_type, kilroy_part, kilroy_open, &kilroy_payload.kilroy_end); \
	} \
	KILROY_STATIC_ASSERT(sizeof(name_) >= 2 && sizeof(name_) <= 256, \
		"the name of an event has 1 to 255 bytes")

#define KILROY_MEMBER(type, name, ...) kilroy_field_##type name;

#define KILROY_LINE(type, name, format, skipped, space, ...) #type " " #name space format "\n"

#define KILROY_PARAMETER(type, name, ...) \
	KILROY_CAT(KILROY_PARAMETER_, KILROY_KIND_##type)(type, name)
#define KILROY_PARAMETER_VALUE(type, name) , kilroy_field_##type name##_
#define KILROY_PARAMETER_STR(type, name) , const char *name##_
#define KILROY_PARAMETER_BYTES(type, name) , const void *name##_, size_t name##_bytes

#define KILROY_PARTS(type, name, ...) KILROY_CAT(KILROY_PARTS_, KILROY_KIND_##type)
#define KILROY_PARTS_VALUE
#define KILROY_PARTS_STR + 2
#define KILROY_PARTS_BYTES + 2

#define KILROY_STORE(type, name, ...) KILROY_CAT(KILROY_STORE_, KILROY_KIND_##type)(name)
#define KILROY_STORE_VALUE(name) kilroy_payload.name = name##_;
#define KILROY_STORE_STR(name) \
	name##_ = name##_ ? name##_ : "(null)"; \
	kilroy_payload.name = kilroy_length(strlen(name##_)); \
	kilroy_open = kilroy_split(kilroy_open, &kilroy_payload.name, name##_, kilroy_payload.name);
#define KILROY_STORE_BYTES(name) \
	kilroy_payload.name = kilroy_length(name##_ ? name##_bytes : 0); \
	kilroy_open = kilroy_split(kilroy_open, &kilroy_payload.name, name##_, kilroy_payload.name);

#define KILROY_RECORD(...) \
	KILROY_CAT(KILROY_RECORD_, KILROY_PICK_26(__VA_ARGS__, \
		MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, \
		MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, ONE, ~))(__VA_ARGS__)
#define KILROY_RECORD_ONE(event) \
	do { \
		if (KILROY_ENABLED(event)) \
			kilroy_pack_##event(KILROY_TYPE(event)); \
	} while (0)
#define KILROY_RECORD_MORE(event, ...) \
	do { \
		if (KILROY_ENABLED(event)) \
			kilroy_pack_##event(KILROY_TYPE(event), __VA_ARGS__); \
	} while (0)

#define KILROY_CAT(a, b) KILROY_CAT_(a, b)
#define KILROY_CAT_(a, b) a##b

#define KILROY_PICK_26(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, \
	a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, ...) a26
#define KILROY_FIELD_COUNT(...) \
	KILROY_PICK_26(__VA_ARGS__, \
		MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, \
		MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, MORE_THAN_12, \
		MORE_THAN_12, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, WITHOUT_NAME, ~)

/* A field becomes (type, name, format, "", " ") or, without a format, (type, name, "", " ", ""). */
#define KILROY_FIELD(...) __VA_ARGS__, "", " ", "", ~
#define KILROY_APPLY(m, ...) m(__VA_ARGS__)

#define KILROY_EACH_0(m, ...)
#define KILROY_EACH_1(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_0(m, __VA_ARGS__)
#define KILROY_EACH_2(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_1(m, __VA_ARGS__)
#define KILROY_EACH_3(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_2(m, __VA_ARGS__)
#define KILROY_EACH_4(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_3(m, __VA_ARGS__)
#define KILROY_EACH_5(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_4(m, __VA_ARGS__)
#define KILROY_EACH_6(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_5(m, __VA_ARGS__)
#define KILROY_EACH_7(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_6(m, __VA_ARGS__)
#define KILROY_EACH_8(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_7(m, __VA_ARGS__)
#define KILROY_EACH_9(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_8(m, __VA_ARGS__)
#define KILROY_EACH_10(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_9(m, __VA_ARGS__)
#define KILROY_EACH_11(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_10(m, __VA_ARGS__)
#define KILROY_EACH_12(m, f, ...) KILROY_APPLY(m, KILROY_FIELD f) KILROY_EACH_11(m, __VA_ARGS__)

/* clang-format on */

KILROY_INLINE uint16_t kilroy_length(size_t len)
{
	return len < UINT16_MAX ? (uint16_t)len : UINT16_MAX;
}

/* Ends the open part behind a length field, adds the content as a part, opens the next. */
KILROY_INLINE struct kilroy_part *kilroy_split(
	struct kilroy_part *open, const void *length, const void *content, uint16_t len)
{
	const char *end = (const char *)length + sizeof(uint16_t);

	open[0].len = (size_t)(end - (const char *)open[0].data);
	open[1].data = content;
	open[1].len = len;
	open[2].data = end;
	return open + 2;
}

KILROY_INLINE void kilroy_finish(struct kilroy_event_type *type, struct kilroy_part *parts,
	struct kilroy_part *open, const char *end)
{
	open->len = (size_t)(end - (const char *)open->data);
	if (open == parts)
		kilroy_record(type, open->data, open->len);
	else
		kilroy_record_parts(type, parts, (unsigned)(open - parts) + 1);
}

/*
 * Streams
 *
 * A stream collects events of this process, of all its threads, until they are read. It belongs to
 * the process that created it: in a forked child every call on it but kilroy_stream_close() fails
 * with -EINVAL, and the child's events do not go there.
 *
 *	state      events are             leaves it by
 *	suspended  ignored                start
 *	running    recorded               stop; full when KILROY_UNTIL_FULL finds no room
 *	full       ignored, counted lost  being read to its end: running; stop, clear: suspended
 *
 * All calls may be made from several threads at once, with these exceptions on one stream:
 *
 *	read   with read, clear   need a lock between them; so does the use of what read gave
 *	close  with any           the stream must not be in use any more
 *
 * None of them is async-signal-safe; events of handlers that interrupt them are recorded.
 */
struct kilroy_stream;

enum kilroy_policy {
	KILROY_LOOP = 1,       /* a full stream forgets its oldest events */
	KILROY_UNTIL_FULL = 2, /* a full stream stops itself until it has been read */
};

/* Time stamps without a fence: an event costs half, but events of different threads may come out
 * in an order that contradicts what caused what. */
#define KILROY_RELAXED 1u
/* Writers fence for themselves: reading does not interrupt other processors (membarrier(2)), for
 * programs with real-time threads on processors of their own. */
#define KILROY_STRONG 2u

/* Zero or NULL means the default in every member but the first. */
struct kilroy_stream_options {
	size_t size;         /* sizeof(struct kilroy_stream_options) */
	size_t stream_bytes; /* events that it holds before it is full; default 1 MiB */
	uint32_t max_data; /* longest payload of an event, in bytes; default 4096, at most 65535 */
	uint32_t policy;   /* enum kilroy_policy; default KILROY_LOOP */
	uint32_t flags;    /* KILROY_RELAXED, KILROY_STRONG */
	uint32_t unused0;  /* 0 */
	const char *name;  /* at most 255 bytes; default: the program's name */
	const char *const *keep; /* shell patterns of event names, then NULL; default: all events */
};

/*
 * Create a stream, suspended. options may be NULL; nothing in it is used after the call. The stream
 * is the caller's, until kilroy_stream_close(). As posix_trace_create() for the own process.
 * 0, or -EINVAL: a wrong size, policy or flag, max_data too great, a name or patterns too long
 * (1023 bytes together); -ENOMEM; -ENOSPC: no room in shared memory; -EAGAIN: the process has as
 * many streams as it can have (62).
 */
int kilroy_stream_create(const struct kilroy_stream_options *options,
	struct kilroy_stream **ret_stream) KILROY_NOTHROW;

/*
 * Start and stop recording; 0 also when it is so already. Every event whose call began after
 * start and returned before stop is there. Both are events themselves, posix_trace_start and
 * posix_trace_stop. A stop wakes a waiting kilroy_stream_read(). Errors: -EINVAL in a forked child.
 */
int kilroy_stream_start(struct kilroy_stream *stream) KILROY_NOTHROW;
int kilroy_stream_stop(struct kilroy_stream *stream) KILROY_NOTHROW;

/* Throw away all unread events; a running stream keeps running. The loss counts stay as they are.
 * Errors: -EINVAL in a forked child. */
int kilroy_stream_clear(struct kilroy_stream *stream) KILROY_NOTHROW;

/* Stop the stream and give everything back, what was read included. NULL is allowed. */
void kilroy_stream_close(struct kilroy_stream *stream) KILROY_NOTHROW;

#define KILROY_EVENT_TRUNCATED 1u /* the payload was cut to max_data */
/* The event's call was held up for so long that later events were given out before: the time is
 * that of the last of these. Nothing that depends on it came before it. */
#define KILROY_EVENT_LATE 2u

/* An event that was read. Members are added at the end, since the library makes it. */
struct kilroy_event {
	uint64_t time_ns; /* CLOCK_REALTIME; never less than that of the event read before */
	uint64_t ticks;   /* the stream's clock; also never less: see kilroy_stream_time() */
	uint64_t address; /* of the instruction behind the call; 0 = not known */
	uint32_t type;    /* number of the event type */
	uint32_t flags;   /* KILROY_EVENT_* */
	int32_t pid, tid;
	int32_t cpu;        /* -1 = not known */
	uint32_t len;       /* of data, in bytes */
	const void *data;   /* the payload, 8-byte aligned */
	const char *name;   /* of the event type; "" = not known */
	const char *fields; /* of the event type, as in struct kilroy_event_type; "" = none */
	const char *thread; /* name of the thread when it became known to the stream */
};

/*
 * Take the oldest event out of the stream. Waits up to timeout_ns nanoseconds for one (0 = does not
 * wait, negative = waits without limit), but not on a stream that does not run. The event, with all
 * it points to, is the stream's, and good until the next call of read, clear or close.
 * 1, *ret_event was set; 0: none came in time, or the stream does not run and has been read to its
 * end; -EINTR: a signal handler ran while it waited; -EINVAL in a forked child. No cancellation
 * point. As posix_trace_timedgetnext_event().
 */
int kilroy_stream_read(struct kilroy_stream *stream, int64_t timeout_ns,
	const struct kilroy_event **ret_event) KILROY_NOTHROW;

/* Why events are not in a stream. */
enum kilroy_loss {
	KILROY_LOSS_FULL = 0,        /* no room: KILROY_UNTIL_FULL */
	KILROY_LOSS_OVERWRITTEN = 1, /* newer events took the room, unread: KILROY_LOOP */
	KILROY_LOSS_DEPTH = 2,       /* too many signal handlers interrupted each other */
	KILROY_LOSS_SLOTS = 3,       /* too many threads at once */
	KILROY_LOSS_MEMORY = 4,      /* no memory for another thread */
	KILROY_LOSS_DIED = 5,        /* a thread ended, or was jumped out of, inside the call */
	KILROY_LOSS_DAMAGED = 6,     /* something wrote into the stream's memory */
	KILROY_LOSS_DISK = 7,        /* a log could not be written */
};

/*
 * Events lost so far, since the stream was created. ret_counts has room for count causes and is
 * indexed by enum kilroy_loss; places of causes that the library does not know become 0.
 * The number of causes it knows, or -EINVAL in a forked child.
 */
int kilroy_stream_losses(
	const struct kilroy_stream *stream, uint64_t *ret_counts, unsigned count) KILROY_NOTHROW;

/* "full", "overwritten", "depth", "slots", "memory", "died", "damaged", "disk"; NULL = no such
 * cause. A constant. Async-signal-safe. */
const char *kilroy_loss_name(int cause) KILROY_NOTHROW;

/*
 * Convert ticks of an event into nanoseconds of a clock: CLOCK_REALTIME, CLOCK_MONOTONIC or
 * CLOCK_BOOTTIME. 0, or -EINVAL: another clock, or in a forked child.
 */
int kilroy_stream_time(const struct kilroy_stream *stream, uint64_t ticks, int clock_id,
	uint64_t *ret_time_ns) KILROY_NOTHROW;

/* Name and fields of an event type by its number; NULL = no such type, "" = a type without fields.
 * They are the stream's, and good until it is closed. */
const char *kilroy_stream_type_name(
	const struct kilroy_stream *stream, uint32_t type) KILROY_NOTHROW;
const char *kilroy_stream_type_fields(
	const struct kilroy_stream *stream, uint32_t type) KILROY_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
