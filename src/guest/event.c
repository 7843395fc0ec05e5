/* SPDX-License-Identifier: MIT */
/* The trace points of the native API; see <kilroy/trace.h>. */
#include "core/emit.h"
#include "kilroy/trace.h"

#include <errno.h>

KLY_API const uint64_t kilroy_unknown_word = 0;

KLY_API const char *kilroy_version(void)
{
	return KLY_VERSION;
}

/*
 * A descriptor's first call. When all numbers are taken the event is recorded as the unnamed one;
 * before the process has begun, the descriptor stays unknown.
 */
static KLY_COLD uint32_t open_descriptor(struct kilroy_event_type *type)
{
	uint32_t id;
	int r = kly_process_open_type(type->name, type->fields, &id);

	if (r == -ENOSPC || r == -ENOMEM || r == -ENAMETOOLONG)
		id = KLY_TYPE_UNNAMED;
	else if (r < 0)
		return KLY_TYPE_NONE;
	__atomic_store_n(&type->id, id, __ATOMIC_RELAXED);
	/* Release: who sees the word sees the id; pairs with the acquire in known_type(). */
	__atomic_store_n(&type->word, &kly_process.words[id], __ATOMIC_RELEASE);
	return id;
}

static inline uint32_t known_type(struct kilroy_event_type *type)
{
	uint32_t id = kly_load_acquire(&type->id);

	return KLY_LIKELY(id != 0) ? id : open_descriptor(type);
}

static inline __attribute__((always_inline)) void record(struct kilroy_event_type *type,
	const struct kly_payload *payload, const void *caller)
{
	uint32_t id = known_type(type);
	uint64_t word = kly_load_relaxed(&kly_process.words[id]);

	if (id && word != KLY_WORD_KNOWN)
		kly_emit(id, word, payload, caller);
}

KLY_API void kilroy_record(struct kilroy_event_type *type, const void *data, size_t len)
{
	const struct kly_part part = {data, len};
	const struct kly_payload payload = {&part, 1, len};

	record(type, &payload, __builtin_return_address(0));
}

static_assert(sizeof(struct kilroy_part) == sizeof(struct kly_part), "one is used as the other");
static_assert(offsetof(struct kilroy_part, len) == offsetof(struct kly_part, len), "the same");

KLY_API void kilroy_record_parts(
	struct kilroy_event_type *type, const struct kilroy_part *parts, unsigned count)
{
	struct kly_payload payload = {(const void *)parts, count, 0};

	for (unsigned i = 0; i < count; i++)
		payload.len += parts[i].len;
	record(type, &payload, __builtin_return_address(0));
}
