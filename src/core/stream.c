/* SPDX-License-Identifier: MIT */
/*
 * Geometry. base_chunks chunks hold min_bytes however they are filled: in each, head and a tail
 * shorter than the largest record may stay empty. Two more per lane in use are a partly read and a
 * partly written one. The object has room for all slots' lanes from the start, but sparse: memory
 * is reserved for the base and INITIAL_WRITERS writers at creation, and for every further writer by
 * itself (N-13 to N-15).
 */
#include "core/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE 4096u
#define DEFAULT_MIN_BYTES (UINT64_C(1) << 20)
#define DEFAULT_MAX_DATA 4096u
#define DEFAULT_SLOTS 4096u
#define INITIAL_WRITERS 16u
#define SMALL_STREAM (256u << 10)
#define SMALL_CHUNK 4096u
#define CHUNK 16384u
#define BASE_CHUNKS_MAX 1024u /* LOOP looks at all of them at a chunk change */
#define POSITIONS_BYTES (2 * KLY_STREAM_BYTES_MAX) /* what 31-bit positions reach */

struct geometry {
	uint64_t lanes_offset, words_offset, chunks_offset, total_bytes;
};

/* Where things lie; the only source of offsets, for makers and mappers alike. */
static struct geometry lay_out(uint32_t slots, uint32_t chunks, uint32_t chunk_bytes)
{
	struct geometry g;

	g.lanes_offset = KLY_ALIGN(
		KLY_STREAM_SLOTS_OFFSET + (uint64_t)slots * sizeof(struct kly_wire_slot), PAGE);
	g.words_offset = KLY_ALIGN(g.lanes_offset + slots, PAGE);
	g.chunks_offset = KLY_ALIGN(g.words_offset + (uint64_t)chunks * 8, PAGE);
	g.total_bytes = g.chunks_offset + (uint64_t)chunks * chunk_bytes;
	return g;
}

static uint32_t usable_bytes(uint32_t chunk_bytes, uint32_t max_data)
{
	return chunk_bytes - (uint32_t)sizeof(struct kly_wire_chunk) -
	       (kly_record_max(max_data) + kly_rec_size(8) - 8);
}

static uint32_t choose_chunk_bytes(uint64_t min_bytes, uint32_t max_data)
{
	uint64_t bytes = min_bytes <= SMALL_STREAM ? SMALL_CHUNK : CHUNK;
	uint64_t least = 2 * (kly_record_max(max_data) + sizeof(struct kly_wire_chunk));

	bytes = KLY_ALIGN(kly_max(bytes, least), PAGE);
	while (KLY_ALIGN(min_bytes, usable_bytes((uint32_t)bytes, max_data)) /
			usable_bytes((uint32_t)bytes, max_data) >
		BASE_CHUNKS_MAX)
		bytes *= 2;
	return (uint32_t)bytes;
}

static int fill_head(struct kly_wire_stream *h, const struct kly_stream_options *o)
{
	uint64_t min_bytes = o->min_bytes ? o->min_bytes : DEFAULT_MIN_BYTES;
	uint32_t max_data = o->max_data ? o->max_data : DEFAULT_MAX_DATA;
	uint32_t slots = o->slot_count ? o->slot_count : DEFAULT_SLOTS;

	if (max_data > KLY_DATA_MAX || slots > KLY_SLOTS_MAX || min_bytes > KLY_STREAM_BYTES_MAX)
		return -EINVAL;

	uint32_t chunk_bytes = choose_chunk_bytes(min_bytes, max_data);
	uint32_t usable = usable_bytes(chunk_bytes, max_data);
	uint32_t base = (uint32_t)((min_bytes + usable - 1) / usable);
	uint64_t chunks = base + UINT64_C(2) * KLY_LANES * slots;

	chunks = kly_min(chunks, POSITIONS_BYTES / chunk_bytes - 1);
	struct geometry g = lay_out(slots, (uint32_t)chunks, chunk_bytes);

	*h = (struct kly_wire_stream){
		.magic = KLY_STREAM_MAGIC,
		.version = KLY_STREAM_VERSION,
		.flags = o->flags,
		.id = o->id,
		.registry_id = o->registry_id,
		.total_bytes = g.total_bytes,
		.min_bytes = min_bytes,
		.chunk_bytes = chunk_bytes,
		.chunk_count = (uint32_t)chunks,
		.slot_count = slots,
		.base_chunks = base,
		.max_data = max_data,
		.policy = o->policy ? o->policy : KLY_POLICY_LOOP,
		.clock = kly_clock_choose(),
		.lanes_offset = g.lanes_offset,
		.words_offset = g.words_offset,
		.chunks_offset = g.chunks_offset,
		.creator_pid = (uint32_t)getpid(),
		.creator_namespace = o->creator_namespace,
		.creator_start = o->creator_start,
	};
	if (o->name)
		strncpy(h->name, o->name, sizeof(h->name) - 1);
	if (o->keep)
		memcpy(h->keep, o->keep, sizeof(h->keep));
	h->keep[sizeof(h->keep) - 1] = '\0';
	while (!h->id)
		if (getrandom(&h->id, sizeof(h->id), 0) != sizeof(h->id))
			return -errno;
	h->ticks_per_second = kly_clock_frequency(h->clock);
	kly_clock_snapshot(h->clock, &h->created);
	return 0;
}

static uint32_t initial_chunks(const struct kly_wire_stream *h)
{
	return (uint32_t)kly_min(h->base_chunks + 2 * INITIAL_WRITERS, h->chunk_count);
}

static uint32_t initial_slots(const struct kly_wire_stream *h)
{
	return (uint32_t)kly_min(INITIAL_WRITERS, h->slot_count);
}

uint64_t kly_stream_reserve_bytes(const struct kly_stream_options *options)
{
	struct kly_wire_stream h;

	if (fill_head(&h, options) < 0)
		return 0;
	return h.chunks_offset + (uint64_t)initial_chunks(&h) * h.chunk_bytes;
}

/* The front (header, slots in use, lanes, words) and the first chunks. Slots that are not used yet
 * stay sparse. */
static int reserve_file(int fd, const struct kly_wire_stream *h)
{
	off_t slots = KLY_STREAM_SLOTS_OFFSET + initial_slots(h) * (off_t)sizeof(struct kly_wire_slot);
	off_t rest = (off_t)h->lanes_offset;
	off_t end = (off_t)h->chunks_offset + initial_chunks(h) * (off_t)h->chunk_bytes;

	if (ftruncate(fd, (off_t)h->total_bytes) < 0)
		return -errno;
	int r = posix_fallocate(fd, 0, slots);
	if (r == 0)
		r = posix_fallocate(fd, rest, end - rest);
	return -r;
}

static void adopt(struct kly_stream *s, void *memory, const struct kly_wire_stream *h)
{
	static uint64_t serials; /* relaxed: a number, nothing hangs on it */
	uint8_t *base = memory;

	*s = (struct kly_stream){
		.chunks = (uint64_t *)(void *)(base + h->chunks_offset),
		.shared = (void *)(base + KLY_STREAM_SHARED_OFFSET),
		.stamp = h->clock != KLY_CLOCK_TSC	? KLY_STAMP_GETTIME
			 : h->flags & KLY_STREAM_RELAXED ? KLY_STAMP_RELAXED
							 : KLY_STAMP_ORDERED,
		.serial = kly_add_relaxed(&serials, 1) + 1,
		.max_data = h->max_data,
		.strong = h->flags & KLY_STREAM_STRONG,
		.chunk_bytes = h->chunk_bytes,
		.chunk_count = h->chunk_count,
		.slot_count = h->slot_count,
		.base_chunks = h->base_chunks,
		.policy = h->policy,
		.clock = h->clock,
		.id = h->id,
		.registry_id = h->registry_id,
		.words = (uint64_t *)(void *)(base + h->words_offset),
		.lanes = base + h->lanes_offset,
		.slots = (void *)(base + KLY_STREAM_SLOTS_OFFSET),
		.head = memory,
		.total_bytes = h->total_bytes,
	};
}

static int map_whole(int fd, size_t bytes, void **ret)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

int kly_stream_create(int fd, const struct kly_stream_options *options, struct kly_stream *ret)
{
	struct kly_wire_stream head;
	void *memory = NULL;

	int r = fill_head(&head, options);
	if (r < 0)
		return r;
	r = reserve_file(fd, &head);
	if (r < 0)
		return r;
	r = map_whole(fd, head.total_bytes, &memory);
	if (r < 0)
		return r;
	memcpy(memory, &head, sizeof(head));
	adopt(ret, memory, &head);
	ret->own = !head.registry_id;
	ret->shared->reserved_chunks = initial_chunks(&head);
	ret->shared->reserved_slots = initial_slots(&head);
	ret->shared->state = kly_state_word(KLY_STATE_SUSPENDED, head.created.ticks);
	return 0;
}

static bool head_is_sane(const struct kly_wire_stream *h, uint64_t file_bytes)
{
	if (h->magic != KLY_STREAM_MAGIC || h->version != KLY_STREAM_VERSION)
		return false;
	if (h->total_bytes != file_bytes || !h->max_data || h->max_data > KLY_DATA_MAX)
		return false;
	if (!h->slot_count || h->slot_count > KLY_SLOTS_MAX)
		return false;
	if (h->chunk_bytes % PAGE || h->chunk_bytes / 2 < kly_record_max(h->max_data) ||
		h->chunk_bytes > UINT32_C(1) << 30)
		return false;
	if (!h->chunk_count || (uint64_t)h->chunk_count * h->chunk_bytes >= POSITIONS_BYTES)
		return false;
	if (h->clock != KLY_CLOCK_TSC && h->clock != KLY_CLOCK_GETTIME)
		return false;
	if (h->policy < KLY_POLICY_LOOP || h->policy > KLY_POLICY_FLUSH)
		return false;

	struct geometry g = lay_out(h->slot_count, h->chunk_count, h->chunk_bytes);
	return g.lanes_offset == h->lanes_offset && g.words_offset == h->words_offset &&
	       g.chunks_offset == h->chunks_offset && g.total_bytes == h->total_bytes &&
	       h->base_chunks && h->base_chunks <= h->chunk_count;
}

int kly_stream_map(int fd, struct kly_stream *ret)
{
	struct kly_wire_stream head;
	struct stat st;
	void *memory = NULL;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return -EBADMSG;
	if (!head_is_sane(&head, (uint64_t)st.st_size))
		return -EBADMSG;
	int r = map_whole(fd, head.total_bytes, &memory);
	if (r < 0)
		return r;
	adopt(ret, memory, &head);
	return 0;
}

void kly_stream_unmap(struct kly_stream *stream)
{
	if (stream->head)
		(void)munmap((void *)(uintptr_t)stream->head, stream->total_bytes);
	*stream = (struct kly_stream){0};
}

void kly_stream_losses(const struct kly_stream *s, uint64_t ret[KLY_LOSS_CAUSES])
{
	uint32_t used = (uint32_t)kly_min(kly_load_acquire(&s->shared->slots_used), s->slot_count);

	for (int cause = 0; cause < KLY_LOSS_CAUSES; cause++) {
		ret[cause] = kly_load_relaxed(&s->shared->lost[cause]);
		for (uint32_t i = 0; i < used; i++)
			ret[cause] += kly_load_relaxed(&s->slots[i].lost[cause]);
	}
}

/*
 * MADV_POPULATE_WRITE needs no descriptor and says -EFAULT where a touch would be SIGBUS. It is
 * async-signal-safe, as a bare system call.
 */
static int populate(const void *from, const void *to)
{
	uintptr_t start = (uintptr_t)from & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = KLY_ALIGN((uintptr_t)to, PAGE);

	if (madvise((void *)start, end - start, MADV_POPULATE_WRITE) < 0)
		return -ENOMEM;
	return 0;
}

/* Raises a shared mark; several may do it at once, each after its own populate(). */
static void raise_mark(uint32_t *mark, uint32_t to)
{
	uint32_t seen = kly_load_relaxed(mark);

	while (seen < to && !kly_cas_acq_rel(mark, &seen, to))
		;
}

int kly_stream_reserve(const struct kly_stream *s, uint32_t chunks, uint32_t slots)
{
	uint32_t have_chunks = kly_load_acquire(&s->shared->reserved_chunks);
	uint32_t have_slots = kly_load_acquire(&s->shared->reserved_slots);

	chunks = (uint32_t)kly_min(chunks, s->chunk_count);
	slots = (uint32_t)kly_min(slots, s->slot_count);
	if (slots > have_slots) {
		int r = populate(&s->slots[have_slots], &s->slots[slots]);
		if (r < 0)
			return r;
		raise_mark(&s->shared->reserved_slots, slots);
	}
	if (chunks > have_chunks) {
		int r = populate(kly_stream_chunk(s, have_chunks), kly_stream_chunk(s, chunks));
		if (r < 0)
			return r;
		raise_mark(&s->shared->reserved_chunks, chunks);
	}
	return 0;
}
