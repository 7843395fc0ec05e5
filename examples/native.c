/* SPDX-License-Identifier: MIT */
/*
 * Traces itself: records into a stream of the own process while threads run, then reads the stream
 * and prints its events and what was lost.
 */
#include <kilroy/trace.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

KILROY_EVENT(ask, "native.ask", (u32, number), (str, question));
KILROY_EVENT(answer, "native.answer", (u32, number), (u64, primes), (f64, density, "%.4f"));
KILROY_EVENT(noise, "native.noise", (u32, number));

static uint64_t primes_below(uint64_t limit)
{
	uint64_t count = 0;

	for (uint64_t n = 2; n < limit; n++) {
		uint64_t divisor = 2;

		while (divisor * divisor <= n && n % divisor != 0)
			divisor++;
		count += divisor * divisor > n;
	}
	return count;
}

static void *work(void *argument)
{
	uint32_t number = *(const uint32_t *)argument;
	uint64_t limit = number * UINT64_C(5000);

	for (uint32_t i = 0; i < 100; i++)
		KILROY_RECORD(noise, i); /* the stream does not keep these */
	KILROY_RECORD(ask, number, "how many primes are there?");
	uint64_t primes = primes_below(limit);
	KILROY_RECORD(answer, number, primes, (double)primes / (double)limit);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[3];
	uint32_t numbers[3] = {1, 2, 3};

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
			exit(1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* Payloads are packed, so a packed struct of the fields is the payload: of native.answer, and of
 * native.ask up to the length of its string. */
struct answer {
	uint32_t number;
	uint64_t primes;
	double density;
} __attribute__((packed));

struct ask {
	uint32_t number;
	uint16_t question_len;
} __attribute__((packed));

static void print_fields(const struct kilroy_event *event)
{
	struct answer answer;
	struct ask ask;

	if (strcmp(event->name, "native.answer") == 0 && event->len == sizeof(answer)) {
		memcpy(&answer, event->data, sizeof(answer));
		printf("number=%" PRIu32 " primes=%" PRIu64 " density=%.4f", answer.number,
			answer.primes, answer.density);
	} else if (strcmp(event->name, "native.ask") == 0 && event->len >= sizeof(ask)) {
		memcpy(&ask, event->data, sizeof(ask));
		printf("number=%" PRIu32 " question=%.*s", ask.number,
			(int)(event->len - sizeof(ask)), (const char *)event->data + sizeof(ask));
	} else {
		printf("%" PRIu32 " bytes", event->len);
	}
}

static void print_event(const struct kilroy_event *event, uint64_t begin_ns)
{
	printf("%10.3f ms  cpu %d  thread %d  %-20s ", (double)(event->time_ns - begin_ns) / 1e6,
		(int)event->cpu, (int)event->tid, event->name);
	print_fields(event);
	printf("\n");
}

/* Prints all that is in a stopped stream. 0 or -errno. */
static int print_events(struct kilroy_stream *stream)
{
	const struct kilroy_event *event;
	uint64_t begin_ns = 0;
	int r;

	while ((r = kilroy_stream_read(stream, 0, &event)) == 1) {
		if (begin_ns == 0)
			begin_ns = event->time_ns;
		print_event(event, begin_ns);
	}
	return r;
}

static int print_losses(const struct kilroy_stream *stream)
{
	uint64_t lost[KILROY_LOSS_DISK + 1];
	uint64_t total = 0;

	int r = kilroy_stream_losses(stream, lost, KILROY_LOSS_DISK + 1);
	if (r < 0)
		return r;
	for (int cause = 0; cause <= KILROY_LOSS_DISK; cause++) {
		total += lost[cause];
		if (lost[cause] > 0)
			printf("lost: %" PRIu64 " %s\n", lost[cause], kilroy_loss_name(cause));
	}
	if (total == 0)
		printf("nothing was lost\n");
	return 0;
}

static int trace(struct kilroy_stream *stream)
{
	int r = kilroy_stream_start(stream);
	if (r < 0)
		return r;
	run_threads();
	r = kilroy_stream_stop(stream);
	if (r < 0)
		return r;
	r = print_events(stream);
	if (r < 0)
		return r;
	return print_losses(stream);
}

int main(void)
{
	static const char *const keep[] = {"native.a*", "posix_trace_*", NULL};
	const struct kilroy_stream_options options = {
		.size = sizeof(options),
		.name = "native",
		.policy = KILROY_UNTIL_FULL,
		.stream_bytes = 64 * 1024,
		.keep = keep,
	};
	struct kilroy_stream *stream;

	printf("kilroy %s\n", kilroy_version());
	int r = kilroy_stream_create(&options, &stream);
	if (r == 0) {
		r = trace(stream);
		kilroy_stream_close(stream);
	}
	if (r < 0)
		fprintf(stderr, "native: %s\n", strerror(-r));
	return r < 0;
}
