/* SPDX-License-Identifier: MIT */
/* The trace point of <trace.h>, and the names of its event types. */
#include "core/emit.h"
#include "posix/names.h"

KLY_API void posix_trace_event(
	trace_event_id_t event_id, const void *restrict data_ptr, size_t data_len)
{
	if (KLY_UNLIKELY(event_id - KLY_TYPE_UNNAMED >= KLY_TYPES_MAX - KLY_TYPE_UNNAMED))
		return; /* a system type, or none */
	uint64_t word = kly_load_relaxed(&kly_process.words[event_id]);
	if (word != KLY_WORD_KNOWN)
		kly_emit(event_id, word, data_ptr, data_len, __builtin_return_address(0));
}

KLY_API int posix_trace_eventid_open(
	const char *restrict event_name, trace_event_id_t *restrict event_id)
{
	return -kly_names_open(event_name, event_id);
}
