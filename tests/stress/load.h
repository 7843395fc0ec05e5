/* SPDX-License-Identifier: MIT */
/*
 * A load of writers and an oracle that reads it.
 *
 * Each writer thread records events in its main program and in two signal handlers that also
 * interrupt each other: three kinds of calls, each with numbers of its own. Around each call it
 * takes part in a shared counter: what it saw before (observed), and what it made of it after the
 * call had returned (returned). So an event whose `observed` reaches another's `returned` began
 * after the other had ended, and must not be read before it.
 *
 * The oracle counts what must not be:
 *   gaps       numbers that were never read, after what the stream counted as lost
 *   torn       events that hold what nobody wrote
 *   backwards  times or numbers that decrease
 *   causal     events read before one that they followed
 *   unpaired   a START of a stream that runs, a STOP of one that does not
 *   misplaced  late events (read at a raised time) of a thread that the reader did not have to pass
 *              over: nobody could help being late but those whom the reader waited 10 ms for
 */
#ifndef KLY_TESTS_STRESS_LOAD_H
#define KLY_TESTS_STRESS_LOAD_H

#include "bed.h"

#define LOAD_WRITERS_MAX 64
#define LOAD_KINDS 3

struct load {
	struct kly_stream_options stream;
	unsigned writers;
	uint64_t events;    /* of each writer's main program */
	unsigned timer_us;  /* period of the signals; 0 = none */
	unsigned extra;     /* greatest payload beyond what the oracle needs */
	uint64_t in_stream; /* writers stop for a while when so many were not yet read; 0 = never */
	unsigned pause_us;  /* the reader sleeps so long, now and then */
	bool reader_writes; /* the reader records an event of its own before each look */
	bool other_process; /* the reader is another process */
	void (*before_event)(void); /* in the writers, before each call; NULL = nothing */
};

struct verdict {
	uint64_t made, seen;
	uint64_t starts; /* START events seen; 0 = the one of the beginning was lost as others were */
	uint64_t gaps, torn, backwards, causal, unpaired, misplaced;
	uint64_t late; /* with those who could not help it */
	uint64_t lost[KLY_LOSS_CAUSES];
	uint64_t lost_all;
};

/* 0 or -errno. */
int load_run(const struct load *load, struct verdict *ret);

void load_print(const struct verdict *v);

#endif
