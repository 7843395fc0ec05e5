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
	/* Release: who sees the word sees the id; pairs with the acquire in look_up(). */
	__atomic_store_n(&type->word, &kly_process.words[id], __ATOMIC_RELEASE);
	return id;
}

/*
 * The word and number of a descriptor; a word of 0 belongs to one that is not open yet, or to a
 * process that has forked. 0: there is nothing to do.
 */
static inline __attribute__((always_inline)) uint32_t look_up(
	struct kilroy_event_type *type, uint64_t *ret_word)
{
	/* Acquire: who sees the word sees the id; pairs with the release in open_descriptor(). */
	uint64_t word = kly_load_relaxed(kly_load_acquire(&type->word));
	uint32_t id = kly_load_relaxed(&type->id);

	if (word == KLY_WORD_KNOWN)
		return KLY_TYPE_NONE;
	if (KLY_UNLIKELY(!id)) {
		id = open_descriptor(type);
		word = kly_load_relaxed(&kly_process.words[id]);
		if (word == KLY_WORD_KNOWN)
			return KLY_TYPE_NONE;
	}
	*ret_word = word;
	return id;
}

KLY_API void kilroy_record(struct kilroy_event_type *type, const void *data, size_t len)
{
	uint64_t word;
	uint32_t id = look_up(type, &word);

	if (id)
		kly_emit(id, word, data, len, __builtin_return_address(0));
}

static_assert(sizeof(struct kilroy_part) == sizeof(struct kly_part), "one is used as the other");
static_assert(offsetof(struct kilroy_part, len) == offsetof(struct kly_part, len), "the same");

KLY_API void kilroy_record_parts(
	struct kilroy_event_type *type, const struct kilroy_part *parts, unsigned count)
{
	struct kly_payload payload = {.parts = (const void *)parts, .count = count};
	uint64_t word;
	uint32_t id = look_up(type, &word);

	if (!id)
		return;
	for (unsigned i = 0; i < count; i++)
		payload.len += parts[i].len;
	kly_emit_general(id, word, &payload, __builtin_return_address(0), kly_frame());
}
