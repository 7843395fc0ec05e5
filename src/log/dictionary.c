/* SPDX-License-Identifier: MIT */
/*
 * One function a kind of packet. Bodies are hostile: a cursor hands out their bytes piece by piece
 * and knows where they end. Texts are copied, with a NUL behind.
 */
#include "log/dictionary.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define ROOM_FIRST 16u
#define LOSSES_BACK 16u /* how far back a neighbour of the same cause is looked for */

static const char no_memory[] = "no memory for what it says";
static const char cut[] = "its contents are cut off";

struct cursor {
	const uint8_t *at, *end;
};

/* The next bytes of a body; NULL: there are not as many. */
static const void *take_bytes(struct cursor *cursor, size_t size)
{
	const uint8_t *at = cursor->at;

	if (size > (size_t)(cursor->end - at))
		return NULL;
	cursor->at += size;
	return at;
}

/* An entry begins at a multiple of 8 from the body's start, as sizes of its fixed parts are. */
static void skip_padding(struct cursor *cursor, size_t text_bytes)
{
	const size_t padding = KLY_ALIGN(text_bytes, 8) - text_bytes;

	cursor->at += kly_min(padding, (size_t)(cursor->end - cursor->at));
}

static char *put_text(char *to, const void *text, size_t bytes)
{
	memcpy(to, text, bytes);
	to[bytes] = '\0';
	return to;
}

/* Room for one more element of an array. */
static int make_room(void *array, size_t count, size_t *room, size_t size)
{
	void **elements = array;

	if (count < *room)
		return 0;
	const size_t more = *room ? 2 * *room : ROOM_FIRST;
	void *grown = reallocarray(*elements, more, size);
	if (!grown)
		return -ENOMEM;
	*elements = grown;
	*room = more;
	return 0;
}

static bool same_type(const struct kly_log_type *a, const struct kly_log_type *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->fields, b->fields) == 0;
}

static const char *take_type(struct kly_log_dictionary *dictionary, struct cursor *cursor)
{
	struct kly_wire_log_type wire;
	const void *bytes = take_bytes(cursor, sizeof(wire));
	if (!bytes)
		return cut;
	memcpy(&wire, bytes, sizeof(wire));

	const void *name = take_bytes(cursor, wire.name_bytes);
	const void *fields = name ? take_bytes(cursor, wire.fields_bytes) : NULL;
	if (!fields)
		return cut;
	skip_padding(cursor, (size_t)wire.name_bytes + wire.fields_bytes);
	if (!wire.type || wire.type >= KLY_TYPES_MAX)
		return "a type's number is out of range";
	if (!wire.name_bytes || wire.name_bytes > KLY_TYPE_NAME_MAX ||
		wire.fields_bytes > KLY_TYPE_FIELDS_MAX)
		return "a type's name or fields are too long or missing";

	struct kly_log_type *type =
		malloc(sizeof(*type) + (size_t)wire.name_bytes + 1 + wire.fields_bytes + 1);
	if (!type)
		return no_memory;
	char *texts = (char *)(type + 1);
	type->id = wire.type;
	type->name = put_text(texts, name, wire.name_bytes);
	type->fields = put_text(texts + wire.name_bytes + 1, fields, wire.fields_bytes);

	struct kly_log_type **place = &dictionary->types[wire.type];
	if (!*place) {
		*place = type;
		return NULL;
	}
	const bool same = same_type(*place, type);
	free(type);
	return same ? NULL : "a type is defined again, and differs";
}

static const char *take_process(struct kly_log_dictionary *dictionary, struct cursor *cursor)
{
	struct kly_wire_log_process wire;
	const void *bytes = take_bytes(cursor, sizeof(wire));
	if (!bytes)
		return cut;
	memcpy(&wire, bytes, sizeof(wire));

	const void *exe = take_bytes(cursor, wire.exe_bytes);
	const void *args = exe ? take_bytes(cursor, wire.args_bytes) : NULL;
	if (!args)
		return cut;
	skip_padding(cursor, (size_t)wire.exe_bytes + wire.args_bytes);

	const size_t text_bytes = (size_t)wire.exe_bytes + 1 + wire.args_bytes + 1;
	const size_t taken = text_bytes + sizeof(*dictionary->processes);
	if (taken > KLY_LOG_DICTIONARY_MAX - dictionary->bytes)
		return "too many processes";
	if (make_room(&dictionary->processes, dictionary->process_count, &dictionary->process_room,
		    sizeof(*dictionary->processes)) < 0)
		return no_memory;
	char *texts = malloc(text_bytes);
	if (!texts)
		return no_memory;

	dictionary->bytes += taken;
	dictionary->processes[dictionary->process_count++] = (struct kly_log_process){
		.pid = wire.pid,
		.parent_pid = wire.parent_pid,
		.pid_namespace = wire.pid_namespace,
		.start_time = wire.start_time,
		.own_pid = wire.own_pid,
		.incarnation = wire.incarnation,
		.exe = put_text(texts, exe, wire.exe_bytes),
		.args = put_text(texts + wire.exe_bytes + 1, args, wire.args_bytes),
		.args_bytes = wire.args_bytes,
	};
	return NULL;
}

static int compare_threads(const struct kly_wire_thread *a, const struct kly_wire_thread *b)
{
	const uint64_t x = (uint64_t)a->pid << 32 | a->tid, y = (uint64_t)b->pid << 32 | b->tid;

	return x < y ? -1 : x > y;
}

/* Sorts threads by merging, which keeps equal ones in their order; scratch is as long. */
static void sort_threads(
	struct kly_wire_thread *threads, size_t count, struct kly_wire_thread *scratch)
{
	const size_t half = count / 2;
	if (!half)
		return;

	sort_threads(threads, half, scratch);
	sort_threads(threads + half, count - half, scratch);
	memcpy(scratch, threads, half * sizeof(*threads));
	for (size_t a = 0, b = half, to = 0; a < half; to++) {
		if (b < count && compare_threads(&threads[b], &scratch[a]) < 0)
			threads[to] = threads[b++];
		else
			threads[to] = scratch[a++];
	}
}

int kly_log_dictionary_settle(struct kly_log_dictionary *dictionary)
{
	struct kly_wire_thread *threads = dictionary->threads;
	const size_t count = dictionary->thread_count;
	size_t kept = 0;

	if (dictionary->sorted_threads == count)
		return 0;
	kly_cleanup(kly_freep) struct kly_wire_thread *scratch = calloc(count, sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	sort_threads(threads, count, scratch);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || compare_threads(&threads[i], &threads[i + 1]) != 0)
			threads[kept++] = threads[i];
	dictionary->sorted_threads = dictionary->thread_count = kept;
	return 0;
}

static const char *take_thread(struct kly_log_dictionary *dictionary, struct cursor *cursor)
{
	const void *bytes = take_bytes(cursor, sizeof(*dictionary->threads));
	if (!bytes)
		return cut;

	if (dictionary->thread_count == dictionary->thread_room) {
		/* Names that are repeated all the time shall not take more and more memory. */
		if (kly_log_dictionary_settle(dictionary) < 0)
			return no_memory;
		if (dictionary->thread_count >
			KLY_LOG_DICTIONARY_MAX / 2 / sizeof(*dictionary->threads))
			return "too many threads";
		if (dictionary->thread_count >= dictionary->thread_room / 2 &&
			make_room(&dictionary->threads, dictionary->thread_room,
				&dictionary->thread_room, sizeof(*dictionary->threads)) < 0)
			return no_memory;
	}
	struct kly_wire_thread *thread = &dictionary->threads[dictionary->thread_count++];
	memcpy(thread, bytes, sizeof(*thread));
	thread->name[sizeof(thread->name) - 1] = '\0';
	return NULL;
}

/* When the list is full, a loss joins the last one of its cause. */
static const char *join_loss(struct kly_log_dictionary *dictionary, const struct kly_log_loss *loss)
{
	for (size_t back = 1; back <= LOSSES_BACK; back++) {
		struct kly_log_loss *old = &dictionary->losses[dictionary->loss_count - back];
		if (old->cause == loss->cause) {
			old->events += loss->events;
			old->begin = kly_min(old->begin, loss->begin);
			old->end = kly_max(old->end, loss->end);
			return NULL;
		}
	}
	return "too many losses";
}

static const char *take_loss(struct kly_log_dictionary *dictionary,
	const struct kly_wire_packet *head, struct cursor *cursor)
{
	struct kly_wire_log_loss wire;
	const void *bytes = take_bytes(cursor, sizeof(wire));
	if (!bytes)
		return cut;
	memcpy(&wire, bytes, sizeof(wire));

	const struct kly_log_loss loss = {
		.cause = wire.cause, .events = wire.events, .begin = head->begin, .end = head->end};
	if (dictionary->loss_count == KLY_LOG_LOSSES_MAX)
		return join_loss(dictionary, &loss);
	if (make_room(&dictionary->losses, dictionary->loss_count, &dictionary->loss_room,
		    sizeof(*dictionary->losses)) < 0)
		return no_memory;
	dictionary->losses[dictionary->loss_count++] = loss;
	return NULL;
}

static const char *take_snapshot(struct kly_log_dictionary *dictionary, struct cursor *cursor)
{
	struct kly_wire_snapshot wire;
	const void *bytes = take_bytes(cursor, sizeof(wire));
	if (!bytes)
		return cut;
	memcpy(&wire, bytes, sizeof(wire));

	const struct kly_instant instant = {.ticks = wire.ticks,
		.monotonic_ns = wire.monotonic_ns,
		.boottime_ns = wire.boottime_ns,
		.realtime_ns = wire.realtime_ns};
	const int r = kly_timeline_add(&dictionary->timeline, &instant);
	if (r == -ENOMEM)
		return no_memory;
	return r < 0 ? "a clock snapshot contradicts the others" : NULL;
}

static const char *take_end(struct kly_log_dictionary *dictionary, struct cursor *cursor)
{
	const void *bytes = take_bytes(cursor, sizeof(dictionary->end));
	if (!bytes)
		return cut;
	memcpy(&dictionary->end, bytes, sizeof(dictionary->end));
	cursor->at = cursor->end; /* later versions may say more */
	dictionary->ended = true;
	return NULL;
}

static const char *take_entry(struct kly_log_dictionary *dictionary,
	const struct kly_wire_packet *head, struct cursor *cursor)
{
	switch (head->kind) {
	case KLY_PACKET_TYPES:
		return take_type(dictionary, cursor);
	case KLY_PACKET_SNAPSHOT:
		return take_snapshot(dictionary, cursor);
	case KLY_PACKET_LOSS:
		return take_loss(dictionary, head, cursor);
	case KLY_PACKET_PROCESS:
		return take_process(dictionary, cursor);
	case KLY_PACKET_THREADS:
		return take_thread(dictionary, cursor);
	case KLY_PACKET_END:
		return take_end(dictionary, cursor);
	default:
		cursor->at = cursor->end;
		return NULL;
	}
}

const char *kly_log_dictionary_take(struct kly_log_dictionary *dictionary,
	const struct kly_wire_packet *head, const uint8_t *body)
{
	struct cursor cursor = {.at = body, .end = body + head->body_bytes};
	const char *first_wrong = NULL;

	while (cursor.at < cursor.end) {
		const char *wrong = take_entry(dictionary, head, &cursor);
		if (!first_wrong)
			first_wrong = wrong;
		if (wrong == cut || wrong == no_memory)
			break;
	}
	return first_wrong;
}

const struct kly_wire_thread *kly_log_dictionary_thread(
	const struct kly_log_dictionary *dictionary, uint32_t pid, uint32_t tid)
{
	const struct kly_wire_thread wanted = {.pid = pid, .tid = tid};
	size_t low = 0, high = dictionary->sorted_threads;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = compare_threads(&dictionary->threads[middle], &wanted);
		if (order == 0)
			return &dictionary->threads[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void kly_log_dictionary_fini(struct kly_log_dictionary *dictionary)
{
	for (size_t i = 0; i < KLY_TYPES_MAX; i++)
		free(dictionary->types[i]);
	for (size_t i = 0; i < dictionary->process_count; i++)
		free((char *)dictionary->processes[i].exe);
	free(dictionary->processes);
	free(dictionary->threads);
	free(dictionary->losses);
	kly_timeline_fini(&dictionary->timeline);
}
