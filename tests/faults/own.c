/* SPDX-License-Identifier: MIT */
/*
 * Streams of the own process, while a call fails somewhere (shim.c). Says `status 0` when all went
 * well and `status 1` when a function told an error. Ends with 2 if events are missing uncounted.
 */
#include <kilroy/trace.h>

#include <pthread.h>
#include <stdio.h>

KILROY_EVENT(own, "faults.own", (u32, n));

#define EVENTS 100u
#define THREADS 3u

static void *work(void *arg)
{
	for (uint32_t n = 0; n < EVENTS; n++)
		KILROY_RECORD(own, n);
	return arg;
}

static int failed(const char *what, int r)
{
	printf("%s: %d\nstatus 1\n", what, r);
	return 0;
}

int main(void)
{
	const struct kilroy_stream_options options = {
		.size = sizeof(options), .stream_bytes = 65536, .policy = KILROY_UNTIL_FULL};
	const struct kilroy_event *event;
	struct kilroy_stream *stream;
	uint64_t lost[8], seen = 0, made = EVENTS;
	int r;

	r = kilroy_stream_create(&options, &stream);
	if (r < 0)
		return failed("create", r);
	r = kilroy_stream_start(stream);
	if (r < 0) {
		kilroy_stream_close(stream);
		return failed("start", r);
	}
	work(NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, NULL))
			continue;
		made += EVENTS;
		pthread_join(thread, NULL);
	}
	r = kilroy_stream_stop(stream);
	if (r < 0) {
		kilroy_stream_close(stream);
		return failed("stop", r);
	}
	while ((r = kilroy_stream_read(stream, 0, &event)) > 0)
		seen += event->len == 4;
	if (r < 0) {
		kilroy_stream_close(stream);
		return failed("read", r);
	}
	int causes = kilroy_stream_losses(stream, lost, 8);
	for (int i = 0; i < causes && i < 8; i++)
		seen += lost[i];
	kilroy_stream_close(stream);
	printf("seen and lost: %u of %u\nstatus 0\n", (unsigned)seen, (unsigned)made);
	/* START and STOP, and an event that was lost, may have been counted more. */
	return seen >= made ? 0 : 2;
}
