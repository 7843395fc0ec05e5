/* SPDX-License-Identifier: MIT */
/* Slots, chunks and lanes; see writer.h and wire/stream.h. */
#include "core/writer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_CHUNK UINT32_MAX
#define CLAIM_TRIES 64     /* lost races for a chunk before the event is given up */
#define ORPHANS_A_LOOK 4   /* slots that a new writer checks for a dead owner */
#define LEFTOVER_LEAST 4   /* a chunk is passed on if a quarter of it is free */

#ifdef KLY_TEST
unsigned kly_switches;
void (*kly_point_hook)(enum kly_point point);
#endif

static uint32_t units(const struct kly_stream *s)
{
	return s->chunk_bytes / 8;
}

static uint32_t chunk_start(const struct kly_stream *s, uint32_t index)
{
	return index * units(s);
}

static uint32_t slots_used(const struct kly_stream *s)
{
	return (uint32_t)kly_min(kly_load_acquire(&s->shared->slots_used), s->slot_count);
}

/* Acquire: pairs with the release in attach() and the lane's set-up. */
static uint32_t lanes_in_use(const struct kly_stream *s)
{
	uint32_t n = 0, used = slots_used(s);

	for (uint32_t i = 0; i < used; i++)
		n += (uint32_t)__builtin_popcount(kly_load_acquire(&s->lanes[i]));
	return n;
}

static uint64_t owned_word(uint32_t slot, uint32_t level, uint64_t claim, bool resumed)
{
	return KLY_CHUNK_OWNED | (claim << KLY_CHUNK_CLAIM_SHIFT & ~KLY_CHUNK_OWNED) |
	       (resumed ? KLY_CHUNK_RESUMED : 0) | slot << 2 | level;
}

static bool owned_by(uint64_t word, uint32_t slot, uint32_t level)
{
	return word & KLY_CHUNK_OWNED && (word & KLY_CHUNK_OWNER) == (slot << 2 | level);
}

/* Whether a chunk with so much left is worth to be passed on to another thread. */
static uint64_t room_bit(const struct kly_stream *s, uint32_t left_units)
{
	return left_units >= units(s) / LEFTOVER_LEAST ? KLY_CHUNK_ROOM : 0;
}

/* The chunk becomes full: its records end at pos, its newest time decides when LOOP takes it. */
static void seal(const struct kly_stream *s, const struct kly_spot *spot, bool pass_on)
{
	struct kly_wire_chunk *chunk = kly_stream_chunk(s, spot->chunk);
	uint64_t room = pass_on ? room_bit(s, spot->end - spot->pos) : 0;

	/* Relaxed: who claims or reads a chunk may look while it is sealed; the word tells. */
	kly_store_relaxed(&chunk->used, (spot->pos - chunk_start(s, spot->chunk)) * 8);
	kly_store_relaxed(&chunk->events, spot->events);
	kly_store_relaxed(&chunk->newest, spot->last);
	/* Release: who sees "full" sees the head; pairs with the acquire in drain.c and in claims. */
	kly_store_release(&s->words[spot->chunk], room | (spot->last & KLY_CHUNK_TIME));
}

/*
 * Burying the dead. A thread that ended without a word leaves slot and chunks; whoever needs room
 * takes them back. What the dead lane had published stays, the record in flight is lost.
 */

static bool alive(uint64_t owner)
{
	pid_t pid = (pid_t)(owner >> 32);
	uint32_t tid = (uint32_t)owner;

	if (tid & KLY_OWNER_CONTROLLER)
		return syscall(SYS_kill, pid, 0) == 0 || errno != ESRCH;
	return syscall(SYS_tgkill, pid, (pid_t)tid, 0) == 0 || errno != ESRCH;
}

/* What the records of a chunk tell about themselves, up to `used` bytes: count and last time. */
static void measure(const struct kly_wire_chunk *chunk, uint32_t used, uint32_t *events,
	uint64_t *last)
{
	uint64_t base = chunk->base;

	*events = 0;
	*last = base;
	for (uint32_t at = sizeof(*chunk); at + sizeof(struct kly_wire_rec) <= used;) {
		const uint8_t *payload = (const uint8_t *)chunk + at + sizeof(struct kly_wire_rec);
		struct kly_wire_rec rec; /* a copy: the memory may change under it */

		memcpy(&rec, (const uint8_t *)chunk + at, sizeof(rec));
		at += kly_rec_size(rec.len);
		if (at > used)
			return;
		if (!(rec.type & KLY_REC_NOTE))
			++*events;
		else if ((rec.type & KLY_REC_TYPE) == KLY_NOTE_TIME && rec.len == sizeof(base))
			memcpy(&base, payload, sizeof(base));
		*last = kly_max(*last, base + rec.delta);
	}
}

static void bury_chunk(const struct kly_stream *s, uint32_t index, uint64_t word, uint32_t pos)
{
	struct kly_wire_chunk *chunk = kly_stream_chunk(s, index);
	uint32_t start = chunk_start(s, index);
	uint64_t next = 0; /* claimed, and nothing written: free again */

	if (pos > start && pos <= start + units(s)) {
		uint32_t used = (pos - start) * 8;

		measure(chunk, used, &chunk->events, &chunk->newest);
		chunk->used = used;
		next = room_bit(s, start + units(s) - pos) | (chunk->newest & KLY_CHUNK_TIME);
	} else if (word & KLY_CHUNK_RESUMED) {
		next = chunk->newest & KLY_CHUNK_TIME; /* as the thread before left it */
	}
	(void)kly_cas_acq_rel(&s->words[index], &word, next);
}

/* The slot's owner is dead, and is `owner`: this caller alone goes on behind the first exchange. */
static bool bury(const struct kly_stream *s, uint32_t index, uint64_t owner, uint64_t me)
{
	struct kly_wire_slot *slot = &s->slots[index];
	uint32_t used = (uint32_t)kly_min(kly_load_acquire(&s->shared->chunks_used), s->chunk_count);

	if (!kly_cas_acq_rel(&slot->owner, &owner, me))
		return false;
	for (uint32_t c = 0; c < used; c++) {
		uint64_t word = kly_load_acquire(&s->words[c]);

		if (word & KLY_CHUNK_OWNED && (word & KLY_CHUNK_OWNER) >> 2 == index)
			bury_chunk(s, c, word,
				kly_load_acquire(&slot->word[word & (KLY_LANES - 1)]) &
					~KLY_LANE_IN_FLIGHT);
	}
	for (uint32_t l = 0; l < KLY_LANES; l++) {
		if (slot->word[l] & KLY_LANE_IN_FLIGHT)
			kly_add_relaxed(&slot->lost[KLY_LOSS_DIED], 1);
		kly_store_release(&slot->word[l], 0);
	}
	kly_store_release(&s->lanes[index], 0);
	return true;
}

static void bury_all_dead(const struct kly_stream *s, uint64_t me)
{
	uint32_t used = slots_used(s);

	for (uint32_t i = 0; i < used; i++) {
		uint64_t owner = kly_load_acquire(&s->slots[i].owner);

		if (owner && owner != me && !alive(owner) && bury(s, i, owner, me))
			kly_store_release(&s->slots[i].owner, 0);
	}
}

/*
 * Slots.
 */

static bool take_slot_at(const struct kly_stream *s, uint32_t i, uint64_t me, bool look)
{
	uint64_t owner = kly_load_acquire(&s->slots[i].owner);

	if (!owner)
		return kly_cas_acq_rel(&s->slots[i].owner, &owner, me);
	/* A slot that bears our own name is an earlier thread's, whose number we were given. */
	return (owner == me || (look && !alive(owner))) && bury(s, i, owner, me);
}

static int take_new_slot(const struct kly_stream *s, uint64_t me, uint32_t *ret)
{
	uint32_t used = slots_used(s);

	while (used < s->slot_count) {
		int r = kly_stream_reserve(s, 0, used + 1);
		if (r < 0)
			return r;
		if (kly_cas_acq_rel(&s->shared->slots_used, &used, used + 1) &&
			take_slot_at(s, used, me, false)) {
			*ret = used;
			return 0;
		}
		used = slots_used(s);
	}
	return -EAGAIN;
}

static int take_slot(const struct kly_stream *s, uint64_t me, uint32_t *ret)
{
	static uint32_t turn; /* relaxed: where the next look begins */
	uint32_t used = slots_used(s), first = kly_add_relaxed(&turn, ORPHANS_A_LOOK);

	for (uint32_t i = 0; i < used; i++) {
		bool look = used && (i - first % used) < ORPHANS_A_LOOK;

		if (take_slot_at(s, i, me, look)) {
			*ret = i;
			return 0;
		}
	}
	int r = take_new_slot(s, me, ret);
	if (r != -EAGAIN)
		return r;
	for (uint32_t i = 0; i < used; i++) {
		if (take_slot_at(s, i, me, true)) {
			*ret = i;
			return 0;
		}
	}
	return -EAGAIN;
}

int kly_writer_attach(struct kly_writer *w, const struct kly_stream *s,
	const struct kly_wire_thread *thread)
{
	uint64_t me = (uint64_t)thread->pid << 32 | thread->tid;
	uint32_t index;

	int r = take_slot(s, me, &index);
	if (r < 0)
		return r;
	w->index = index;
	w->refusals = 0;
	w->thread = *thread;
	for (uint32_t l = 0; l < KLY_LANES; l++) {
		w->lanes[l] = (struct kly_lane){0};
		kly_store_release(&s->slots[index].word[l], 0);
	}
	kly_compiler_fence(); /* a handler that comes now sees an attached writer whole, or none */
	w->slot = &s->slots[index];
	w->chunks = s->chunks;
	w->shared = s->shared;
	w->stamp = s->stamp;
	w->max_data = s->max_data;
	w->strong = s->strong;
	w->serial = s->serial;
	bool usual = !s->strong && s->stamp != KLY_STAMP_GETTIME && s->max_data >= 8;
	w->usual_serial = usual ? s->serial : 0;
	return 0;
}

bool kly_writer_inherit(struct kly_writer *w, const struct kly_stream *s, uint64_t heir)
{
	uint64_t owner = (uint64_t)w->thread.pid << 32 | w->thread.tid;

	if (w->serial != s->serial)
		return false;
	if (kly_cas_acq_rel(&w->slot->owner, &owner, heir))
		return true;
	w->serial = w->usual_serial = 0;
	return false;
}

void kly_writer_detach(struct kly_writer *w, const struct kly_stream *s)
{
	struct kly_wire_slot *slot = w->slot;

	if (w->serial != s->serial)
		return;
	/* A dead stream's chunks are nobody's, and their memory may have been taken back. */
	bool dead = kly_state_of(kly_load_acquire(&s->shared->state)) == KLY_STATE_DEAD;

	for (uint32_t l = 0; l < KLY_LANES; l++) {
		if (!dead)
			kly_lane_heal(w, s, l);
		if (!dead && w->lanes[l].now.end)
			seal(s, &w->lanes[l].now, true);
		/* Release: after the chunk is full; pairs with the acquire in drain.c. */
		kly_store_release(&slot->word[l], 0);
	}
	kly_store_release(&s->lanes[w->index], 0);
	w->serial = w->usual_serial = 0;
	kly_store_release(&slot->owner, 0);
}

/*
 * Chunks.
 */

static uint32_t pool_limit(const struct kly_stream *s)
{
	uint32_t limit = s->base_chunks + 2 * lanes_in_use(s);

	limit = (uint32_t)kly_min(limit, kly_load_acquire(&s->shared->reserved_chunks));
	return (uint32_t)kly_min(limit, s->chunk_count);
}

static void note_chunks_used(const struct kly_stream *s, uint32_t index)
{
	uint32_t seen = kly_load_relaxed(&s->shared->chunks_used);

	while (seen <= index && !kly_cas_acq_rel(&s->shared->chunks_used, &seen, index + 1))
		;
}

struct claim {
	const struct kly_stream *s;
	uint32_t slot, level;
	uint64_t ticks;
};

static bool claim_word(const struct claim *c, uint32_t index, uint64_t seen, bool resumed)
{
	note_chunks_used(c->s, index);
	return kly_cas_acq_rel(&c->s->words[index], &seen,
		owned_word(c->slot, c->level, c->ticks, resumed));
}

static uint32_t claim_free(const struct claim *c, uint32_t limit)
{
	for (uint32_t i = 0; i < limit; i++)
		if (!kly_load_relaxed(&c->s->words[i]) && claim_word(c, i, 0, false))
			return i;
	return NO_CHUNK;
}

static void note_first_lost(const struct kly_stream *s, uint64_t ticks)
{
	uint64_t seen = kly_load_relaxed(&s->shared->first_lost);

	while ((!seen || seen > ticks) && !kly_cas_acq_rel(&s->shared->first_lost, &seen, ticks))
		;
}

/*
 * LOOP: the full chunk whose newest time is least. The horizon is raised before the claim, so that
 * nobody can see the chunk gone and the horizon not yet there; if the claim fails, another writer
 * has just taken the same chunk, or a reader has read it.
 */
static uint32_t claim_oldest(const struct claim *c, uint32_t limit)
{
	const struct kly_stream *s = c->s;

	for (int try = 0; try < CLAIM_TRIES; try++) {
		uint32_t oldest = NO_CHUNK;
		uint64_t least = UINT64_MAX, word = 0;

		for (uint32_t i = 0; i < limit; i++) {
			uint64_t seen = kly_load_acquire(&s->words[i]);

			if (!(seen & KLY_CHUNK_OWNED) && (seen & KLY_CHUNK_TIME) < least) {
				oldest = i;
				word = seen;
				least = seen & KLY_CHUNK_TIME;
			}
		}
		if (oldest == NO_CHUNK)
			return NO_CHUNK;
		const struct kly_wire_chunk *head = kly_stream_chunk(s, oldest);
		uint32_t events = word ? kly_load_relaxed(&head->events) : 0;
		uint64_t first = kly_load_relaxed(&head->base);

		if (word && !KLY_SWITCH(KLY_NO_HORIZON))
			kly_max_acq_rel(&s->shared->horizon, least);
		if (!claim_word(c, oldest, word, false))
			continue;
		kly_add_relaxed(&s->slots[c->slot].lost[KLY_LOSS_OVERWRITTEN],
			kly_min(events, s->chunk_bytes / sizeof(struct kly_wire_rec)));
		if (word)
			note_first_lost(s, first);
		return oldest;
	}
	return NO_CHUNK;
}

static uint32_t claim_any(const struct claim *c)
{
	uint32_t limit = pool_limit(c->s);
	uint32_t index = claim_free(c, limit);

	if (index == NO_CHUNK && c->s->policy == KLY_POLICY_LOOP)
		index = claim_oldest(c, limit);
	return index;
}

/* Nothing left: perhaps the dead hold some. System calls, but only where the event is lost else. */
static uint32_t claim_chunk(const struct claim *c)
{
	uint32_t index = claim_any(c);

	if (index != NO_CHUNK)
		return index;
	bury_all_dead(c->s, kly_load_relaxed(&c->s->slots[c->slot].owner));
	return claim_any(c);
}

static uint32_t claim_leftover(const struct claim *c, uint32_t limit)
{
	for (uint32_t i = 0; i < limit; i++) {
		uint64_t seen = kly_load_acquire(&c->s->words[i]);

		if (!(seen & KLY_CHUNK_OWNED) && seen & KLY_CHUNK_ROOM && claim_word(c, i, seen, true))
			return i;
	}
	return NO_CHUNK;
}

static void put_note(const struct kly_stream *s, struct kly_spot *spot, uint16_t note,
	const void *payload, uint16_t len, uint64_t ticks)
{
	struct kly_wire_rec *rec = (void *)(s->chunks + spot->pos);

	*rec = (struct kly_wire_rec){.type = KLY_REC_NOTE | note, .len = len};
	if (note != KLY_NOTE_TIME)
		rec->delta = (uint32_t)(ticks - spot->base);
	memcpy(rec + 1, payload, len);
	spot->last = ticks;
	kly_compiler_fence();
	spot->pos += kly_rec_size(len) / 8;
	kly_compiler_fence(); /* a jump here leaves a base that is too far still: another note follows */
	if (note == KLY_NOTE_TIME)
		spot->base = ticks;
}

static void put_time(const struct kly_stream *s, struct kly_spot *spot, uint64_t ticks)
{
	put_note(s, spot, KLY_NOTE_TIME, &ticks, sizeof(ticks), ticks);
}

static void begin_fresh(const struct kly_stream *s, const struct kly_writer *w,
	struct kly_spot *spot, uint32_t index, uint64_t ticks)
{
	struct kly_wire_chunk *chunk = kly_stream_chunk(s, index);
	uint32_t start = chunk_start(s, index);

	/* The base names this filling: a reader that copied records and finds the base unchanged
	 * has copied records of this filling. So the new base comes before any new record. */
	kly_store_relaxed(&chunk->base, ticks);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* pairs with the acquire fence in drain.c */
	chunk->thread = w->thread;
	*spot = (struct kly_spot){
		.pos = start + sizeof(*chunk) / 8,
		.end = start + units(s),
		.base = ticks,
		.last = ticks,
		.chunk = index,
	};
}

/* Goes on behind what an ended thread left. Its numbers are shared memory: checked. */
static bool resume(const struct kly_stream *s, const struct kly_writer *w,
	struct kly_spot *spot, uint32_t index, uint64_t ticks)
{
	const struct kly_wire_chunk *chunk = kly_stream_chunk(s, index);
	uint32_t used = kly_load_relaxed(&chunk->used), start = chunk_start(s, index);
	uint32_t need = kly_rec_size(sizeof(ticks)) + kly_rec_size(sizeof(w->thread));

	if (used < sizeof(*chunk) || used % 8 || used + need > s->chunk_bytes)
		return false;
	*spot = (struct kly_spot){
		.pos = start + used / 8,
		.end = start + units(s),
		.events = kly_load_relaxed(&chunk->events),
		.chunk = index,
	};
	put_time(s, spot, ticks);
	put_note(s, spot, KLY_NOTE_THREAD, &w->thread, sizeof(w->thread), ticks);
	return true;
}

/* The lane goes to its staged spot. A copy, so that a lane is found without a pointer; it is made
 * again if it was jumped out of. */
static void flip(struct kly_writer *w, uint32_t level)
{
	struct kly_lane *lane = &w->lanes[level];

	kly_compiler_fence();
	lane->changing = KLY_STAGED;
	kly_compiler_fence();
	lane->now = w->next[level];
	kly_compiler_fence();
	lane->changing = KLY_NOT_CHANGING;
	kly_compiler_fence();
}

/* Everything behind the claim; done again from the start if a jump left it half-way. */
static void complete_change(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint32_t index, uint64_t ticks)
{
	struct kly_lane *lane = &w->lanes[level];
	const struct kly_spot *old = &lane->now;

	begin_fresh(s, w, &w->next[level], index, ticks);
	if (old->end && owned_by(kly_load_relaxed(&s->words[old->chunk]), w->index, level))
		seal(s, old, false);
	KLY_POINT(KLY_POINT_SEALED);
	flip(w, level);
	KLY_POINT(KLY_POINT_FLIPPED);
}

static bool change_chunk(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint64_t ticks)
{
	struct kly_lane *lane = &w->lanes[level];
	const struct claim claim = {s, w->index, level, ticks};

	lane->changing = KLY_CLAIMING;
	kly_compiler_fence();
	uint32_t index = claim_chunk(&claim);
	if (index == NO_CHUNK) {
		lane->changing = KLY_NOT_CHANGING;
		return false;
	}
	KLY_POINT(KLY_POINT_CLAIMED);
	complete_change(w, s, level, index, ticks);
	return true;
}

/* A chunk that was taken over goes back as its thread left it. */
static void give_back(const struct kly_stream *s, uint32_t index)
{
	kly_store_release(&s->words[index],
		KLY_CHUNK_ROOM | (kly_stream_chunk(s, index)->newest & KLY_CHUNK_TIME));
}

static bool take_leftover(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint64_t ticks)
{
	struct kly_lane *lane = &w->lanes[level];
	const struct claim claim = {s, w->index, level, ticks};

	lane->changing = KLY_CLAIMING;
	kly_compiler_fence();
	uint32_t index = claim_leftover(&claim, pool_limit(s));
	if (index != NO_CHUNK && resume(s, w, &w->next[level], index, ticks)) {
		flip(w, level);
		return true;
	}
	if (index != NO_CHUNK)
		give_back(s, index);
	kly_compiler_fence();
	lane->changing = KLY_NOT_CHANGING;
	return false;
}

/* A thread's first event on a level: memory for its two chunks, then one to begin with. */
static int set_up_lane(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint64_t ticks)
{
	if (w->refusals && w->refusals++ % KLY_REFUSALS_A_TRY)
		return -ENOMEM;
	/* Release: pairs with lanes_in_use(). This thread alone writes its byte. */
	kly_store_release(&s->lanes[w->index],
		kly_load_relaxed(&s->lanes[w->index]) | (uint8_t)(1u << level));
	if (kly_stream_reserve(s, s->base_chunks + 2 * lanes_in_use(s), 0) < 0) {
		w->refusals = 1;
		return -ENOMEM;
	}
	w->refusals = 0;
	if (take_leftover(w, s, level, ticks) || change_chunk(w, s, level, ticks))
		return 0;
	return -ENOSPC;
}

/*
 * An event that was taken at `ticks` finds no room: the stream stops now. Not at `ticks`: its call has
 * not returned, so no one can know when in its course the event was; and others have recorded since.
 * Of a stream that was started again meanwhile, the event says nothing.
 */
static void stop_full(const struct kly_stream *s, uint64_t ticks)
{
	uint64_t seen = kly_load_acquire(&s->shared->state);

	while (kly_state_of(seen) == KLY_STATE_RUNNING && kly_state_time(seen) < ticks)
		if (kly_cas_acq_rel(&s->shared->state, &seen,
			    kly_state_word(KLY_STATE_FULL, kly_stream_now(s))))
			return;
}

static int another_chunk(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint32_t size, uint64_t ticks)
{
	const struct kly_spot *spot = &w->lanes[level].now;

	if (!spot->end) {
		int r = set_up_lane(w, s, level, ticks);
		if (r < 0 || spot->pos + size / 8 <= spot->end)
			return r;
		/* what another thread left is too small for this event */
	}
	return change_chunk(w, s, level, ticks) ? 0 : -ENOSPC;
}

bool kly_lane_make_room(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint32_t size, uint64_t ticks)
{
	struct kly_spot *spot = &w->lanes[level].now;

	if (spot->end && (size + kly_rec_size(sizeof(ticks))) / 8 <= spot->end - spot->pos) {
		put_time(s, spot, ticks); /* room is there, so the time was too far */
		kly_lane_store(w, level, spot->pos | KLY_LANE_IN_FLIGHT);
		return true;
	}
	int saved = errno;
	int r = another_chunk(w, s, level, size, ticks);
	errno = saved;
	if (r == 0) {
		kly_lane_store(w, level, spot->pos | KLY_LANE_IN_FLIGHT);
		return true;
	}
	if (r == -ENOSPC && s->policy != KLY_POLICY_LOOP)
		stop_full(s, ticks);
	kly_writer_lost(w, r == -ENOMEM ? KLY_LOSS_MEMORY : KLY_LOSS_FULL);
	return false;
}

void kly_lane_rename(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	const struct kly_wire_thread *thread, uint32_t size, uint64_t ticks)
{
	struct kly_spot *spot = &w->lanes[level].now;
	uint32_t note = kly_rec_size(sizeof(*thread));

	if (memcmp(&w->thread, thread, sizeof(*thread)) == 0)
		return;
	w->thread = *thread; /* a new chunk says so in its head */
	if (spot->pos + (note + size) / 8 <= spot->end && ticks - spot->base <= UINT32_MAX)
		put_note(s, spot, KLY_NOTE_THREAD, thread, sizeof(*thread), ticks);
	else
		spot->end = spot->pos; /* so the record goes into another one */
}

/* At most one chunk can bear the lane's name beside its current one: the claim of a change. */
static uint32_t abandoned_claim(const struct kly_writer *w, const struct kly_stream *s,
	uint32_t level)
{
	const struct kly_spot *now = &w->lanes[level].now;
	uint32_t used = (uint32_t)kly_min(kly_load_acquire(&s->shared->chunks_used), s->chunk_count);

	for (uint32_t i = 0; i < used; i++)
		if (owned_by(kly_load_relaxed(&s->words[i]), w->index, level) &&
			!(now->end && i == now->chunk))
			return i;
	return NO_CHUNK;
}

static void redo_change(struct kly_writer *w, const struct kly_stream *s, uint32_t level)
{
	struct kly_lane *lane = &w->lanes[level];

	if (lane->changing == KLY_STAGED) {
		flip(w, level);
		return;
	}
	uint32_t index = abandoned_claim(w, s, level);
	if (index != NO_CHUNK && kly_load_relaxed(&s->words[index]) & KLY_CHUNK_RESUMED)
		give_back(s, index);
	else if (index != NO_CHUNK)
		complete_change(w, s, level, index, kly_stream_now(s));
	lane->changing = KLY_NOT_CHANGING;
}

/* Whether the record was written: the lane has moved since its word was stored. Behind a change of
 * the chunk the word is stored again, so the two are in one chunk then. */
static bool is_complete(const struct kly_stream *s, const struct kly_spot *now, uint32_t stored)
{
	return now->end && stored > chunk_start(s, now->chunk) && stored < now->pos;
}

void kly_lane_heal(struct kly_writer *w, const struct kly_stream *s, uint32_t level)
{
	struct kly_lane *lane = &w->lanes[level];

	if (lane->changing && !KLY_SWITCH(KLY_NO_REDO))
		redo_change(w, s, level);
	uint32_t word = w->slot->word[level];
	if (!(word & KLY_LANE_IN_FLIGHT))
		return;
	if (!is_complete(s, &lane->now, word & ~KLY_LANE_IN_FLIGHT))
		kly_writer_lost(w, KLY_LOSS_DIED);
	kly_lane_publish(w, level);
}
