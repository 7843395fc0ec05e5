/* SPDX-License-Identifier: MIT */
#include "core/process.h"
#include "base/glob.h"
#include "core/fence.h"
#include "core/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRAVES 16
#define PATIENCE_NS (10 * 1000 * 1000) /* for threads in flight, when a stream is closed */

struct kly_process kly_process;

static const struct kly_process_host *host;
static bool begun;
static uint32_t failed_generation[KLY_STREAMS_MAX + 1]; /* of a place that could not be mapped */

void kly_signals_block(sigset_t *ret_before)
{
	uint64_t all = UINT64_MAX;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, ret_before, sizeof(all));
}

void kly_signals_restore(const sigset_t *before)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(uint64_t));
}

/*
 * Slow paths use mappings without being in flight; who takes one away counts the visitors.
 * Sequentially consistent against the exchange in drop(): it sees the visitor, or the visitor sees
 * no mapping. A child begins without any: a visitor cannot fork, for signals are blocked.
 */
void kly_process_visit(sigset_t *ret_before)
{
	kly_signals_block(ret_before);
	(void)__atomic_fetch_add(&kly_process.ours.visitors, 1, __ATOMIC_SEQ_CST);
}

void kly_process_leave(const sigset_t *before)
{
	(void)__atomic_fetch_sub(&kly_process.ours.visitors, 1, __ATOMIC_SEQ_CST);
	kly_signals_restore(before);
}

static bool map_at(void *where, size_t bytes, int flags, int fd, off_t offset)
{
	return mmap(where, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, offset) == where;
}

static bool put_zeroes(void *where, size_t bytes)
{
	return map_at(where, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/*
 * The control block, from the file that a controller left, or of our own.
 */

static int adopt_block(int fd)
{
	struct kly_wire_block head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != KLY_BLOCK_MAGIC ||
		head.version != KLY_BLOCK_VERSION ||
		lseek(fd, 0, SEEK_END) != (off_t)KLY_BLOCK_BYTES)
		return -EBADMSG;

	void *p = mmap(NULL, KLY_BLOCK_WORDS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	int registry = host->open_object('r', head.registry_id);
	int r = registry < 0 ? registry : kly_registry_map(registry, &kly_process.registry);
	if (registry >= 0)
		(void)close(registry);
	if (r == 0 && !map_at(kly_process.words, sizeof(kly_process.words), MAP_SHARED, fd,
			      KLY_BLOCK_WORDS_OFFSET))
		r = -errno;
	if (r < 0) {
		(void)munmap(p, KLY_BLOCK_WORDS_OFFSET);
		return r;
	}
	kly_process.block = p;
	return 0;
}

static int make_block(void)
{
	void *p = mmap(NULL, KLY_BLOCK_WORDS_OFFSET, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	kly_process.block = p;
	*kly_process.block = (struct kly_wire_block){
		.magic = KLY_BLOCK_MAGIC,
		.version = KLY_BLOCK_VERSION,
		.pid = kly_process.pid,
	};
	return 0;
}

static int find_block(void)
{
	int fd = host->find_block();

	if (fd < 0)
		return fd;
	int r = adopt_block(fd);
	(void)close(fd);
	return r;
}

/* Whether the calling thread has interrupted a trace point of its own. */
static bool in_flight(void)
{
	return kly_is_registered(kly_self) && kly_self->top;
}

/*
 * A forked child. If it was forked inside a trace point (by a signal handler), the interrupted call
 * goes on in the child when the handler returns: it must find its stream's memory, but not its
 * parent's. Then the words are made empty, so that the child's trace points ask. Both by bare
 * system calls: the child of a threaded process may use nothing else.
 */
static void on_fork_child(void)
{
	if (in_flight()) {
		for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
			struct kly_stream *s = kly_process.streams[place];

			if (s)
				(void)put_zeroes((void *)(uintptr_t)s->head, s->total_bytes);
		}
	}
	(void)put_zeroes(kly_process.words, sizeof(kly_process.words));
	kly_threads_after_fork();
}

static bool raise_alive(void)
{
	if (!put_zeroes(&kly_process.ours, 4096))
		return false;
	(void)madvise(&kly_process.ours, 4096, MADV_WIPEONFORK);
	kly_store_release(&kly_process.ours.alive, 1);
	return true;
}

/*
 * The child becomes a process of its own: with no streams, but with its parent's names. By one of its
 * threads, while the others find that there is nothing to do.
 */
static bool renew(void)
{
	static uint32_t renewed; /* the process for which this was done */
	uint32_t pid = (uint32_t)getpid(), seen = kly_load_relaxed(&renewed);

	if (!begun || in_flight())
		return false; /* too early; or a call of the parent's is still to be finished */
	if (seen == pid || !kly_cas_acq_rel(&renewed, &seen, pid))
		return false;
	(void)put_zeroes(kly_process.words, sizeof(kly_process.words));
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		struct kly_stream *s = kly_process.streams[place];

		kly_process.ours.keys[place] = 0;
		kly_process.streams[place] = NULL;
		if (s)
			kly_stream_unmap(s);
	}
	(void)munmap(kly_process.block, KLY_BLOCK_WORDS_OFFSET);
	kly_process.pid = pid;
	kly_threads_after_fork();
	if (make_block() < 0) {
		kly_store_relaxed(&renewed, 0);
		return false;
	}
	kly_store_release(&kly_process.ours.alive, 1);
	return true;
}

int kly_process_begin(const struct kly_process_host *h)
{
	host = h;
	kly_process.pid = (uint32_t)getpid();
	kly_process.strong = !kly_fence_register();
	int r = kly_threads_begin();
	if (r < 0)
		return r;
	for (uint32_t place = 0; place <= KLY_STREAMS_MAX; place++)
		kly_process.ours.keys[place] = 0;
	if (find_block() < 0) {
		r = make_block();
		if (r == 0)
			r = kly_registry_create(-1, 0, &kly_process.registry);
		if (r < 0)
			return r;
	}
	(void)pthread_atfork(NULL, NULL, on_fork_child);
	if (!raise_alive())
		return -ENOMEM;
	kly_process.block->incarnation++; /* from here on it is true that this image records */
	begun = true;
	return 0;
}

void kly_process_disable(void)
{
	for (uint32_t type = 0; type < KLY_TYPES_MAX; type++)
		kly_store_relaxed(&kly_process.words[type], KLY_WORD_KNOWN);
}

/*
 * Mapped streams.
 */

static void free_mapping(struct kly_stream *s)
{
	kly_stream_unmap(s);
	(void)munmap(s, sizeof(*s));
}

static struct kly_stream *graves[GRAVES];

/* Frees what was dropped while a thread was in flight. Beyond GRAVES address space is leaked. */
static void bury_later(struct kly_stream *s)
{
	for (int i = 0; s && i < GRAVES; i++) {
		struct kly_stream *none = NULL;

		if (kly_cas_acq_rel(&graves[i], &none, s))
			return;
	}
}

static void empty_graves(void)
{
	for (int i = 0; i < GRAVES; i++) {
		struct kly_stream *s = kly_exchange_acq_rel(&graves[i], NULL);

		if (s)
			free_mapping(s);
	}
}

/*
 * A thread marks itself in flight before it looks up the mapping. So after a barrier, a thread that
 * is not in flight will find no mapping; one that is may still use it, and gets zeroes under its
 * feet, which take its stores (N-22).
 */
static void drop(uint32_t place, uint32_t visits_of_mine, uint64_t patience_ns)
{
	kly_store_release(&kly_process.ours.keys[place], 0);
	struct kly_stream *s = kly_exchange_acq_rel(&kly_process.streams[place], NULL);

	if (!s)
		return;
	kly_full_fence();
	bool idle = kly_fence_threads() && kly_threads_settle(patience_ns) &&
		    kly_load_acquire(&kly_process.ours.visitors) <= visits_of_mine;

	if (idle) {
		free_mapping(s);
		empty_graves();
		return;
	}
	(void)put_zeroes((void *)(uintptr_t)s->head, s->total_bytes);
	bury_later(s);
}

void kly_process_drop_place(uint32_t place)
{
	drop(place, 0, PATIENCE_NS);
}

/* From here on the stream of the place may be written to. */
static void put_key(uint32_t place, const struct kly_stream *s)
{
	uint64_t bit = UINT64_C(1) << place;

	if (s->stamp == KLY_STAMP_RELAXED)
		kly_or_acq_rel(&kly_process.relaxed, bit);
	else
		kly_and_acq_rel(&kly_process.relaxed, ~bit);
	kly_store_release(&kly_process.ours.keys[place], s->serial + 1);
}

void kly_process_put_place(uint32_t place, struct kly_stream *s)
{
	kly_store_release(&kly_process.streams[place], s);
	put_key(place, s);
}

struct kly_stream *kly_process_new_stream(void)
{
	void *p = mmap(NULL, sizeof(struct kly_stream), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct kly_stream *map_stream(uint64_t id)
{
	struct kly_stream mapped;
	int fd = host->open_object('s', id);

	if (fd < 0)
		return NULL;
	int r = kly_stream_map(fd, &mapped);
	(void)close(fd);
	if (r < 0)
		return NULL;
	struct kly_stream *s = kly_process_new_stream();
	if (!s || mapped.id != id) {
		kly_stream_unmap(&mapped);
		return NULL;
	}
	*s = mapped;
	s->strong |= kly_process.strong;
	return s;
}

struct kly_stream *kly_process_map_place(uint32_t place)
{
	const struct kly_wire_place *p = &kly_process.block->places[place];
	uint32_t generation = kly_load_acquire(&p->generation);
	uint64_t id = kly_load_relaxed(&p->stream_id);
	struct kly_stream *seen = kly_load_acquire(&kly_process.streams[place]);

	if (!(generation & 1))
		return NULL;
	if (seen && seen->id == id)
		return seen;
	if (kly_load_relaxed(&failed_generation[place]) == generation)
		return NULL;
	if (seen)
		drop(place, 1, 0);

	struct kly_stream *mine = map_stream(id);
	if (!mine) {
		kly_store_relaxed(&failed_generation[place], generation);
		return NULL;
	}
	seen = NULL;
	if (kly_cas_acq_rel(&kly_process.streams[place], &seen, mine)) {
		put_key(place, mine);
		return mine;
	}
	free_mapping(mine); /* another thread was faster */
	return seen;
}

/*
 * Enable words.
 */

struct kly_target kly_process_target(void)
{
	return (struct kly_target){kly_process.block, kly_process.words, kly_process.registry};
}

void kly_stream_apply_keep(const struct kly_stream *s, const struct kly_registry *r, uint32_t type)
{
	char copy[KLY_KEEP_BYTES]; /* the memory may change while it is looked at */
	const char *keep = copy, *name;

	memcpy(copy, s->head->keep, sizeof(copy));
	copy[sizeof(copy) - 1] = '\0';
	if (!*keep || type < KLY_TYPE_UNNAMED || !kly_registry_get(r, type, &name, NULL))
		return;
	for (; keep < copy + sizeof(copy) && *keep; keep += strlen(keep) + 1)
		if (kly_glob_match(keep, name))
			return;
	kly_or_acq_rel(&s->shared->filter[type / 64], UINT64_C(1) << type % 64);
}

static bool wants(const struct kly_stream *s, uint32_t type)
{
	enum kly_state state = kly_state_of(kly_load_acquire(&s->shared->state));

	return (state == KLY_STATE_RUNNING || state == KLY_STATE_FULL) &&
	       !kly_stream_filters(s, type);
}

/*
 * The type is published first, then the streams are looked at; a controller publishes its stream's
 * state first, then looks at the types. With a full barrier in between on both sides, one of the
 * two sees the other (N-24).
 */
static uint64_t make_known(uint32_t type)
{
	uint64_t *word = &kly_process.words[type];

	if (!kly_registry_get(&kly_process.registry, type, NULL, NULL))
		return 0;
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		const struct kly_stream *s = kly_process_map_place(place);

		if (s)
			kly_stream_apply_keep(s, &kly_process.registry, type);
	}
	kly_or_acq_rel(word, KLY_WORD_KNOWN);
	kly_full_fence();
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		const struct kly_stream *s = kly_load_acquire(&kly_process.streams[place]);

		if (s && kly_load_acquire(&kly_process.block->places[place].generation) & 1 &&
			wants(s, type))
			kly_or_acq_rel(word, UINT64_C(1) << place);
	}
	return kly_load_acquire(word);
}

static void lose_in_all(uint64_t word)
{
	for (uint64_t places = word & KLY_WORD_STREAMS; places; places &= places - 1) {
		const struct kly_stream *s =
			kly_load_acquire(&kly_process.streams[__builtin_ctzll(places)]);

		if (s)
			kly_stream_lost(s, KLY_LOSS_SLOTS, 1);
	}
}

static bool find_self(void)
{
	static __thread uint32_t refusals __attribute__((tls_model("initial-exec")));

	if (kly_is_registered(kly_self))
		return true;
	if (refusals++ % KLY_REFUSALS_A_TRY || kly_thread_register() < 0)
		return false;
	refusals = 0;
	return true;
}

static uint64_t ask(uint32_t type)
{
	if (!kly_load_acquire(&kly_process.ours.alive) && !renew())
		return 0;

	uint64_t *word = &kly_process.words[type];
	bool known = find_self();

	if (kly_load_relaxed(word) & KLY_WORD_ASK)
		kly_and_acq_rel(word, ~KLY_WORD_ASK);
	uint64_t now = kly_load_acquire(word) & KLY_WORD_KNOWN ? kly_load_acquire(word)
								: make_known(type);
	if (known)
		return now;
	lose_in_all(now);
	return 0;
}

uint64_t kly_process_ask(uint32_t type)
{
	int saved = errno;
	sigset_t before;

	kly_process_visit(&before);
	uint64_t word = ask(type);
	kly_process_leave(&before);
	errno = saved;
	return word;
}

int kly_process_open_type(const char *name, const char *fields, uint32_t *ret_type)
{
	int saved = errno, r = -EAGAIN;
	sigset_t before;

	kly_process_visit(&before);
	if (kly_load_acquire(&kly_process.ours.alive) || renew())
		r = kly_registry_open(&kly_process.registry, name, fields, ret_type);
	if (r == 0 && !(kly_load_acquire(&kly_process.words[*ret_type]) & KLY_WORD_KNOWN))
		(void)make_known(*ret_type);
	kly_process_leave(&before);
	errno = saved;
	return r;
}

bool kly_process_ready(void)
{
	sigset_t before;

	kly_process_visit(&before);
	bool ready = kly_load_acquire(&kly_process.ours.alive) || renew();
	kly_process_leave(&before);
	return ready;
}

int kly_target_add(const struct kly_target *target, uint64_t stream_id)
{
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		struct kly_wire_place *p = &target->block->places[place];
		uint32_t generation = kly_load_acquire(&p->generation);
		uint64_t none = 0;

		if (generation & 1 || !kly_cas_acq_rel(&p->stream_id, &none, stream_id))
			continue;
		kly_store_release(&p->generation, generation + 1);
		return (int)place;
	}
	return -EAGAIN;
}

void kly_target_remove(const struct kly_target *target, uint32_t place)
{
	struct kly_wire_place *p = &target->block->places[place];

	kly_target_disable(target, place);
	kly_store_release(&p->generation, kly_load_relaxed(&p->generation) + 1);
	kly_store_release(&p->stream_id, 0);
}

void kly_target_enable(const struct kly_target *target, uint32_t place, const struct kly_stream *s)
{
	kly_full_fence(); /* after the state was published; pairs with make_known() */
	for (uint32_t type = 1; type < KLY_TYPES_MAX; type++) {
		if (!(kly_load_acquire(&target->words[type]) & KLY_WORD_KNOWN))
			continue;
		kly_stream_apply_keep(s, &target->registry, type);
		if (wants(s, type))
			kly_or_acq_rel(&target->words[type], UINT64_C(1) << place);
		else
			kly_and_acq_rel(&target->words[type], ~(UINT64_C(1) << place));
	}
}

void kly_target_disable(const struct kly_target *target, uint32_t place)
{
	uint64_t bit = UINT64_C(1) << place;

	for (uint32_t type = 1; type < KLY_TYPES_MAX; type++)
		if (kly_load_relaxed(&target->words[type]) & bit)
			kly_and_acq_rel(&target->words[type], ~bit);
}
