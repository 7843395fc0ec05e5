/* SPDX-License-Identifier: MIT */
/*
 * bench/compare ROUNDS EVENTS KILROY-WORKER [LTTNG-WORKER]
 *
 * Runs the workers, tells them in turn what to measure, round by round, and prints medians, ranges,
 * and the ratios that kilroy promises, each with "reached" or "missed". Only ratios of one run mean
 * something; see docs/bench.md.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS_MAX 99

struct worker {
	FILE *to, *from;
};

enum { KILROY, LTTNG, WORKERS };

struct measure {
	const char *kind;
	int worker, threads;
	double ns[ROUNDS_MAX]; /* sorted in the end */
};

static struct measure measures[] = {
	{"lfence-rdtsc", KILROY, 1, {0}}, {"lfence-rdtsc", KILROY, 2, {0}},
	{"rdtsc", KILROY, 1, {0}}, {"empty", KILROY, 1, {0}},
	{"8", KILROY, 1, {0}}, {"8", LTTNG, 1, {0}}, {"8", KILROY, 2, {0}}, {"8", LTTNG, 2, {0}},
	{"64", KILROY, 1, {0}}, {"64", LTTNG, 1, {0}}, {"64", KILROY, 2, {0}}, {"64", LTTNG, 2, {0}},
	{"256", KILROY, 1, {0}}, {"256", LTTNG, 1, {0}}, {"256", KILROY, 2, {0}},
	{"256", LTTNG, 2, {0}},
	{"8-relaxed", KILROY, 1, {0}}, {"8-two-streams", KILROY, 1, {0}},
	{"8-four-streams", KILROY, 1, {0}}, {"off-macro", KILROY, 1, {0}},
	{"off-function", KILROY, 1, {0}},
};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

/* What is promised of a: at most `most` times b, or, if difference is set, `most` ns above b. */
static const struct promise {
	const char *text, *kind, *other;
	int threads, other_threads, other_worker;
	double most;
	bool difference;
} promises[] = {
	{"8 B, 1 thread, of lfence;rdtsc", "8", "lfence-rdtsc", 1, 1, KILROY, 1.4, false},
	{"8 B, 2 threads, of lfence;rdtsc", "8", "lfence-rdtsc", 2, 2, KILROY, 1.4, false},
	{"8 B, 1 thread, of LTTng-UST", "8", "8", 1, 1, LTTNG, 0.36, false},
	{"8 B, 2 threads, of LTTng-UST", "8", "8", 2, 2, LTTNG, 0.36, false},
	{"64 B, 1 thread, of LTTng-UST", "64", "64", 1, 1, LTTNG, 0.4, false},
	{"64 B, 2 threads, of LTTng-UST", "64", "64", 2, 2, LTTNG, 0.4, false},
	{"256 B, 1 thread, of LTTng-UST", "256", "256", 1, 1, LTTNG, 0.4, false},
	{"256 B, 2 threads, of LTTng-UST", "256", "256", 2, 2, LTTNG, 0.4, false},
	{"relaxed clock, of rdtsc", "8-relaxed", "rdtsc", 1, 1, KILROY, 1.3, false},
	{"disabled macro, ns above an empty loop", "off-macro", "empty", 1, 1, KILROY, 0.5, true},
	{"disabled function, ns above an empty loop", "off-function", "empty", 1, 1, KILROY, 2.5,
		true},
	{"2 streams, of 1", "8-two-streams", "8", 1, 1, KILROY, 1.45, false},
	{"4 streams, of 1", "8-four-streams", "8", 1, 1, KILROY, 2.2, false},
	{"8 B, 2 threads, of 1 thread", "8", "8", 2, 1, KILROY, 1.15, false},
	{"256 B, 2 threads, of 1 thread", "256", "256", 2, 1, KILROY, 1.45, false},
};

static struct worker begin_worker(const char *path)
{
	int to[2], from[2];
	struct worker w;

	if (pipe(to) < 0 || pipe(from) < 0)
		exit(1);
	if (fork() == 0) {
		(void)dup2(to[0], STDIN_FILENO);
		(void)dup2(from[1], STDOUT_FILENO);
		(void)close(to[1]);
		(void)close(from[0]);
		(void)execl(path, path, (char *)NULL);
		perror(path);
		_exit(127);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	w.to = fdopen(to[1], "w");
	w.from = fdopen(from[0], "r");
	return w;
}

static double measure(const struct worker *w, const struct measure *m, long events)
{
	double ns;

	(void)fprintf(w->to, "%s %d %ld\n", m->kind, m->threads, events);
	(void)fflush(w->to);
	if (fscanf(w->from, "%lf", &ns) != 1 || ns < 0) {
		(void)fprintf(stderr, "compare: no answer for %s\n", m->kind);
		exit(1);
	}
	return ns;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static const struct measure *find(const char *kind, int worker, int threads)
{
	for (size_t i = 0; i < MEASURES; i++)
		if (strcmp(measures[i].kind, kind) == 0 && measures[i].worker == worker &&
			measures[i].threads == threads)
			return &measures[i];
	return NULL;
}

static void print_measures(int rounds, const bool have[WORKERS])
{
	printf("%-10s %-16s %7s %10s   %s\n", "tracer", "what", "threads", "ns/event", "range");
	for (size_t i = 0; i < MEASURES; i++) {
		const struct measure *m = &measures[i];

		if (have[m->worker])
			printf("%-10s %-16s %7d %10.2f   %.2f to %.2f\n",
				m->worker == KILROY ? "kilroy" : "lttng-ust", m->kind, m->threads,
				m->ns[rounds / 2], m->ns[0], m->ns[rounds - 1]);
	}
}

static void print_promises(int rounds, const bool have[WORKERS])
{
	printf("\n%-44s %8s %8s\n", "promise", "at most", "is");
	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
		const struct promise *p = &promises[i];
		const struct measure *a = find(p->kind, KILROY, p->threads);
		const struct measure *b = find(p->other, p->other_worker, p->other_threads);

		if (!have[p->other_worker])
			continue;
		double x = a->ns[rounds / 2], y = b->ns[rounds / 2];
		double is = p->difference ? x - y : x / y;
		printf("%-44s %8.2f %8.2f  %s\n", p->text, p->most, is,
			is <= p->most ? "reached" : "missed");
	}
}

int main(int argc, char **argv)
{
	struct worker workers[WORKERS];
	bool have[WORKERS] = {argc > 3, argc > 4};
	int rounds = argc > 3 ? atoi(argv[1]) : 0;
	long events = argc > 3 ? atol(argv[2]) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX || events < 10) {
		(void)fprintf(stderr, "usage: compare ROUNDS EVENTS KILROY-WORKER [LTTNG-WORKER]\n");
		return 2;
	}
	for (int i = 0; i < WORKERS; i++)
		if (have[i])
			workers[i] = begin_worker(argv[3 + i]);
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < MEASURES; i++)
			if (have[measures[i].worker])
				measures[i].ns[r] = measure(
					&workers[measures[i].worker], &measures[i], events);
	for (size_t i = 0; i < MEASURES; i++)
		qsort(measures[i].ns, (size_t)rounds, sizeof(double), by_value);
	print_measures(rounds, have);
	print_promises(rounds, have);
	return 0;
}
