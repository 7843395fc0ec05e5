/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#define READER LOAD_WRITERS_MAX /* its number as a writer */
#define RETURNED_MAX (UINT64_C(1) << 24)

KILROY_EVENT(tick, "stress.tick", (bytes, body));

struct body {
	uint32_t writer, kind;
	uint64_t number, observed;
	uint32_t extra; /* bytes that follow, each fill(number) */
	uint32_t check;
};

/* What writers and reader share, also across processes. */
struct shared {
	uint64_t counter;
	uint64_t read;
	uint32_t go, done, reader_ready;
	uint64_t made[LOAD_WRITERS_MAX + 1][LOAD_KINDS];
	uint32_t tid[LOAD_WRITERS_MAX + 1];
	uint64_t *returned[LOAD_WRITERS_MAX + 1][LOAD_KINDS]; /* 0 = not yet */
	struct verdict verdict;
};

struct writer {
	struct run *run;
	uint32_t number;
	uint64_t random;
	pthread_t thread;
};

struct run {
	const struct load *load;
	struct bed bed;
	struct shared *shared;
	struct writer writers[LOAD_WRITERS_MAX + 1];
};

static __thread struct writer *me;

static uint8_t fill(uint64_t number)
{
	return (uint8_t)(number * 2654435761u >> 13);
}

static uint32_t check_of(const struct body *b)
{
	return b->writer * 7 + b->kind * 77 + (uint32_t)b->number * 777 + (uint32_t)b->observed + b->extra;
}

static void post(uint32_t kind)
{
	struct shared *s = me->run->shared;
	uint64_t number = kly_load_relaxed(&s->made[me->number][kind]);
	uint32_t most = me->run->load->extra;
	uint8_t bytes[sizeof(struct body) + 4096];
	struct body body = {
		.writer = me->number,
		.kind = kind,
		.number = number,
		.extra = most ? (uint32_t)((number * 40503u >> 4) % (most + 1)) : 0,
		.observed = kly_load_acquire(&s->counter),
	};

	if (number >= RETURNED_MAX)
		return;
	body.check = check_of(&body);
	memcpy(bytes, &body, sizeof(body));
	memset(bytes + sizeof(body), fill(number), body.extra);
	if (me->run->load->before_event)
		me->run->load->before_event();
	kly_store_relaxed(&s->made[me->number][kind], number + 1);
	kilroy_record(KILROY_TYPE(tick), bytes, sizeof(body) + body.extra);
	kly_store_relaxed(&s->returned[me->number][kind][number],
		__atomic_add_fetch(&s->counter, 1, __ATOMIC_SEQ_CST));
}

static void on_signal(int signal)
{
	int saved = errno;

	if (me)
		post(signal == SIGUSR1 ? 1 : 2);
	errno = saved;
}

static uint64_t made_by_all(const struct shared *s)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w <= LOAD_WRITERS_MAX; w++)
		for (uint32_t k = 0; k < LOAD_KINDS; k++)
			n += kly_load_relaxed(&s->made[w][k]);
	return n;
}

static void hold_back(const struct run *run)
{
	while (run->load->in_stream &&
		made_by_all(run->shared) - kly_load_relaxed(&run->shared->read) > run->load->in_stream)
		(void)sched_yield();
}

static void *write_events(void *argument)
{
	struct writer *w = argument;
	const struct load *load = w->run->load;
	timer_t timers[2] = {0};
	sigset_t all;

	kly_store_release(&w->run->shared->tid[w->number], (uint32_t)syscall(SYS_gettid));
	me = w;
	while (!kly_load_acquire(&w->run->shared->go))
		(void)sched_yield();
	if (BED_TSAN)
		post(0); /* not in a handler: see bed.h */
	if (load->timer_us) {
		timers[0] = bed_timer_create(SIGUSR1, load->timer_us);
		timers[1] = bed_timer_create(SIGUSR2, load->timer_us * 7 / 5);
	}
	for (uint64_t i = 0; i < load->events; i++) {
		post(0);
		if (i % 64 == 0)
			hold_back(w->run);
	}
	(void)sigfillset(&all);
	if (load->timer_us) {
		(void)timer_delete(timers[0]);
		(void)timer_delete(timers[1]);
	}
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	return NULL;
}

/* The oracle. */

struct oracle {
	struct run *run;
	struct kly_reader *reader;
	struct verdict v;
	uint64_t next[LOAD_WRITERS_MAX + 1][LOAD_KINDS];
	uint64_t last_ticks, greatest_observed;
	bool running; /* by what was read */
	uint32_t passed_over[(LOAD_WRITERS_MAX + 2) * KLY_LANES]; /* as last seen */
	uint32_t excuses[LOAD_WRITERS_MAX + 1];
};

static uint32_t writer_of_tid(const struct shared *s, uint32_t tid)
{
	for (uint32_t w = 0; w <= LOAD_WRITERS_MAX; w++)
		if (kly_load_acquire(&s->tid[w]) == tid)
			return w;
	return UINT32_MAX;
}

/* A flight that the reader did not wait for any longer may give one late event. */
static void note_excuses(struct oracle *o)
{
	const struct kly_drain *d = &o->reader->drain;
	uint32_t slots = kly_load_acquire(&d->stream->shared->slots_used);

	for (uint32_t i = 0; i < slots * KLY_LANES && i < KLY_COUNT(o->passed_over); i++) {
		if (d->passed_over[i] && d->passed_over[i] != o->passed_over[i]) {
			uint32_t w = writer_of_tid(o->run->shared,
				(uint32_t)kly_load_acquire(&d->stream->slots[i / KLY_LANES].owner));

			if (w <= LOAD_WRITERS_MAX)
				o->excuses[w]++;
		}
		o->passed_over[i] = d->passed_over[i];
	}
}

static bool is_torn(const struct kly_event *e, struct body *ret)
{
	const uint8_t *extra = (const uint8_t *)e->data + sizeof(*ret);

	if (e->len < sizeof(*ret))
		return true;
	memcpy(ret, e->data, sizeof(*ret));
	if (ret->check != check_of(ret) || ret->extra != e->len - sizeof(*ret) ||
		ret->writer > LOAD_WRITERS_MAX || ret->kind >= LOAD_KINDS)
		return true;
	for (uint32_t i = 0; i < ret->extra; i++)
		if (extra[i] != fill(ret->number))
			return true;
	return false;
}

static void judge(struct oracle *o, const struct kly_event *e)
{
	struct verdict *v = &o->v;
	struct body b;

	v->backwards += e->ticks < o->last_ticks;
	o->last_ticks = e->ticks;
	if (e->type == KLY_TYPE_START || e->type == KLY_TYPE_STOP) {
		v->unpaired += o->running == (e->type == KLY_TYPE_START);
		o->running = e->type == KLY_TYPE_START;
		v->starts += o->running;
	}
	if (e->type < KLY_TYPE_UNNAMED)
		return;
	v->seen++;
	kly_store_relaxed(&o->run->shared->read, v->seen);
	if (is_torn(e, &b)) {
		v->torn++;
		return;
	}
	if (e->flags & KLY_EVENT_LATE) {
		v->late++;
		if (o->excuses[b.writer])
			o->excuses[b.writer]--;
		else
			v->misplaced++;
	}
	uint64_t *next = &o->next[b.writer][b.kind];
	if (b.number < *next)
		v->backwards++;
	else
		v->gaps += b.number - *next;
	*next = b.number + 1;
	uint64_t returned = kly_load_relaxed(&o->run->shared->returned[b.writer][b.kind][b.number]);
	if (returned && o->greatest_observed >= returned)
		v->causal++;
	o->greatest_observed = kly_max(o->greatest_observed, b.observed);
}

static void read_all(struct run *run, struct kly_reader *reader)
{
	struct oracle *o = calloc(1, sizeof(*o));
	struct shared *s = run->shared;
	struct kly_event e;

	o->run = run;
	o->reader = reader;
	for (uint64_t looks = 0, done = 0; done < 3; looks++) {
		done = kly_load_acquire(&s->done) ? done + 1 : 0;
		if (run->load->reader_writes && !done)
			post(0);
		while (kly_reader_next(reader, &e) == 1) {
			note_excuses(o);
			judge(o, &e);
		}
		note_excuses(o);
		if (run->load->pause_us && looks % 16 == 0 && !done)
			bed_sleep_us(run->load->pause_us);
		else if (!run->load->reader_writes)
			(void)sched_yield();
	}
	struct verdict *v = &o->v;
	kly_reader_losses(reader, v->lost);
	for (int i = 0; i < KLY_LOSS_CAUSES; i++)
		v->lost_all += v->lost[i];
	for (uint32_t w = 0; w <= LOAD_WRITERS_MAX; w++)
		for (uint32_t k = 0; k < LOAD_KINDS; k++)
			v->gaps += s->made[w][k] - kly_min(o->next[w][k], s->made[w][k]);
	v->made = made_by_all(s);
	v->gaps -= kly_min(v->gaps, v->lost_all);
	s->verdict = *v;
	free(o);
}

static void *read_in_thread(void *argument)
{
	struct run *run = argument;

	me = &run->writers[READER];
	kly_store_release(&run->shared->tid[READER], (uint32_t)syscall(SYS_gettid));
	kly_store_release(&run->shared->reader_ready, 1);
	read_all(run, &run->bed.reader);
	return NULL;
}

static int read_in_process(struct run *run)
{
	struct kly_stream s;
	struct kly_reader reader;

	if (kly_stream_map(run->bed.fd, &s) < 0 || kly_reader_init(&reader, &s, NULL) < 0)
		return 1;
	kly_store_release(&run->shared->reader_ready, 1);
	read_all(run, &reader);
	kly_reader_fini(&reader);
	return 0;
}

static void *map_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void run_writers(struct run *run)
{
	const struct load *load = run->load;

	for (uint32_t i = 0; i < load->writers; i++)
		if (pthread_create(&run->writers[i].thread, NULL, write_events, &run->writers[i]))
			abort();
	kly_store_release(&run->shared->go, 1);
	for (uint32_t i = 0; i < load->writers; i++)
		(void)pthread_join(run->writers[i].thread, NULL);
	kly_store_release(&run->shared->done, 1);
}

static int run_all(struct run *run)
{
	pthread_t thread;
	pid_t child = 0;
	int status = 0;

	if (run->load->other_process) {
		child = fork();
		if (child == 0)
			_exit(read_in_process(run));
		if (child < 0)
			return -errno;
	} else if (pthread_create(&thread, NULL, read_in_thread, run)) {
		return -EAGAIN;
	}
	while (!kly_load_acquire(&run->shared->reader_ready))
		(void)sched_yield();
	run_writers(run);
	if (!child)
		return -pthread_join(thread, NULL);
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : -ECHILD;
}

int load_run(const struct load *load, struct verdict *ret)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	const size_t returned_bytes = RETURNED_MAX * sizeof(uint64_t);
	struct run *run = calloc(1, sizeof(*run));

	run->load = load;
	run->shared = map_shared(sizeof(*run->shared));
	for (uint32_t w = 0; w <= LOAD_WRITERS_MAX; w++) {
		run->writers[w] = (struct writer){.run = run, .number = w};
		for (uint32_t k = 0; k < LOAD_KINDS && (w < load->writers || w == READER); k++)
			run->shared->returned[w][k] = map_shared(returned_bytes);
	}
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)sigaction(SIGUSR2, &action, NULL);
	int r = bed_open(&run->bed, &load->stream);
	if (r == 0) {
		bed_start(&run->bed);
		r = run_all(run);
		*ret = run->shared->verdict;
		bed_close(&run->bed);
	}
	for (uint32_t w = 0; w <= LOAD_WRITERS_MAX; w++)
		for (uint32_t k = 0; k < LOAD_KINDS; k++)
			if (run->shared->returned[w][k])
				(void)munmap(run->shared->returned[w][k], returned_bytes);
	(void)munmap(run->shared, sizeof(*run->shared));
	free(run);
	return r;
}

void load_print(const struct verdict *v)
{
	printf("# made %llu seen %llu gaps %llu torn %llu backwards %llu causal %llu unpaired %llu misplaced %llu "
	       "late %llu; lost",
		(unsigned long long)v->made, (unsigned long long)v->seen, (unsigned long long)v->gaps,
		(unsigned long long)v->torn, (unsigned long long)v->backwards,
		(unsigned long long)v->causal, (unsigned long long)v->unpaired,
		(unsigned long long)v->misplaced, (unsigned long long)v->late);
	for (int i = 0; i < KLY_LOSS_CAUSES; i++)
		if (v->lost[i])
			printf(" %s %llu", kilroy_loss_name(i), (unsigned long long)v->lost[i]);
	printf("\n");
}
