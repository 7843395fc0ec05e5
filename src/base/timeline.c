/* SPDX-License-Identifier: MIT */
/*
 * A slope is a pair: so many nanoseconds in so many ticks. All products are 128 bits wide, so any
 * times fit. A time is counted from the snapshot to its left, rounded down: this never decreases
 * within a segment, and reaches the snapshot to the right exactly.
 */
#include "base/timeline.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define ROOM_FIRST 64u
#define NS_PER_SECOND UINT64_C(1000000000)

#define SLOPE_SECONDS_PART 10 /* a slope is taken from snapshots 1/10 s apart or more */

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a < b ? 0 : a - b;
}

struct slope {
	uint64_t ns, ticks; /* ticks > 0 */
};

/* One of the clocks of an instant, by its offset in the struct. */
#define CLOCK(name) offsetof(struct kly_instant, name)
static uint64_t read_clock(const struct kly_instant *instant, size_t clock)
{
	return *(const uint64_t *)((const char *)instant + clock);
}

void kly_timeline_init(struct kly_timeline *timeline, uint64_t ticks_per_second)
{
	*timeline = (struct kly_timeline){
		.ticks_per_second = ticks_per_second ? ticks_per_second : NS_PER_SECOND};
}

void kly_timeline_fini(struct kly_timeline *timeline)
{
	free(timeline->instants);
	*timeline = (struct kly_timeline){0};
}

/* Index of the first instant later than ticks; count if there is none. */
static size_t find_after(const struct kly_timeline *timeline, uint64_t ticks)
{
	size_t low = 0, high = timeline->count;

	/* Whoever follows a live stream asks for the end. */
	if (high && timeline->instants[high - 1].ticks <= ticks)
		return high;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (timeline->instants[middle].ticks <= ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool may_follow(const struct kly_instant *later, const struct kly_instant *earlier)
{
	return later->monotonic_ns >= earlier->monotonic_ns &&
	       later->boottime_ns >= earlier->boottime_ns;
}

/* Gives up every second instant; keeps the first and the last. */
static void thin_out(struct kly_timeline *timeline)
{
	const size_t last = timeline->count - 1;
	size_t kept = 0;

	for (size_t i = 0; i < last; i += 2)
		timeline->instants[kept++] = timeline->instants[i];
	timeline->instants[kept++] = timeline->instants[last];
	timeline->count = kept;
}

static int make_room(struct kly_timeline *timeline)
{
	if (timeline->count < timeline->room)
		return 0;
	if (timeline->room >= KLY_TIMELINE_MAX) {
		thin_out(timeline);
		return 0;
	}

	const size_t room = timeline->room ? 2 * timeline->room : ROOM_FIRST;
	void *instants = reallocarray(timeline->instants, room, sizeof(*timeline->instants));
	if (!instants)
		return -ENOMEM;
	timeline->instants = instants;
	timeline->room = room;
	return 0;
}

static void set_creation(struct kly_timeline *timeline, const struct kly_instant *instant)
{
	timeline->created = true;
	timeline->created_monotonic_ns = instant->monotonic_ns;
	timeline->created_realtime_ns = instant->realtime_ns;
}

int kly_timeline_add(struct kly_timeline *timeline, const struct kly_instant *instant)
{
	int r = make_room(timeline);
	if (r < 0)
		return r;

	struct kly_instant *at = timeline->instants + find_after(timeline, instant->ticks);
	const struct kly_instant *end = timeline->instants + timeline->count;

	if (at > timeline->instants && at[-1].ticks == instant->ticks)
		return memcmp(&at[-1], instant, sizeof(*instant)) == 0 ? 0 : -EINVAL;
	if (at > timeline->instants && !may_follow(instant, &at[-1]))
		return -EINVAL;
	if (at < end && !may_follow(at, instant))
		return -EINVAL;

	if (!timeline->created)
		set_creation(timeline, instant);
	memmove(at + 1, at, (size_t)((const char *)end - (const char *)at));
	*at = *instant;
	timeline->count++;
	return 0;
}

int kly_timeline_add_creation(struct kly_timeline *timeline, const struct kly_instant *created)
{
	set_creation(timeline, created);
	return kly_timeline_add(timeline, created);
}

static struct slope slope_between(
	const struct kly_instant *left, const struct kly_instant *right, size_t clock)
{
	return (struct slope){
		.ns = read_clock(right, clock) - read_clock(left, clock),
		.ticks = right->ticks - left->ticks,
	};
}

static struct slope nominal_slope(const struct kly_timeline *timeline)
{
	return (struct slope){.ns = NS_PER_SECOND, .ticks = timeline->ticks_per_second};
}

/* The slope with which time goes on after the last instant. */
static struct slope last_slope(const struct kly_timeline *timeline, size_t clock)
{
	const struct kly_instant *last = &timeline->instants[timeline->count - 1];
	const uint64_t least = timeline->ticks_per_second / SLOPE_SECONDS_PART + 1;
	const size_t after = last->ticks < least ? 0 : find_after(timeline, last->ticks - least);

	return after ? slope_between(&timeline->instants[after - 1], last, clock)
		     : nominal_slope(timeline);
}

/* The slope with which time came to the first instant. */
static struct slope first_slope(const struct kly_timeline *timeline, size_t clock)
{
	const struct kly_instant *first = timeline->instants;
	const uint64_t least = timeline->ticks_per_second / SLOPE_SECONDS_PART;
	const size_t after = find_after(timeline, plus(first->ticks, least));

	return after < timeline->count ? slope_between(first, first + after, clock)
				       : nominal_slope(timeline);
}

static uint64_t along(struct slope slope, uint64_t ticks)
{
	const unsigned __int128 ns = (unsigned __int128)slope.ns * ticks / slope.ticks;

	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static uint64_t convert(const struct kly_timeline *timeline, uint64_t ticks, size_t clock)
{
	const size_t after = find_after(timeline, ticks);
	const struct kly_instant *i = &timeline->instants[after];

	if (!timeline->count)
		return 0;
	if (after == 0)
		return minus(read_clock(i, clock),
			along(first_slope(timeline, clock), i->ticks - ticks));

	const struct slope slope = after == timeline->count ? last_slope(timeline, clock)
							    : slope_between(i - 1, i, clock);
	return plus(read_clock(i - 1, clock), along(slope, ticks - i[-1].ticks));
}

uint64_t kly_timeline_monotonic(const struct kly_timeline *timeline, uint64_t ticks)
{
	return convert(timeline, ticks, CLOCK(monotonic_ns));
}

uint64_t kly_timeline_boottime(const struct kly_timeline *timeline, uint64_t ticks)
{
	return convert(timeline, ticks, CLOCK(boottime_ns));
}

uint64_t kly_timeline_realtime(const struct kly_timeline *timeline, uint64_t ticks)
{
	const uint64_t now = kly_timeline_monotonic(timeline, ticks);

	if (now < timeline->created_monotonic_ns)
		return minus(timeline->created_realtime_ns, timeline->created_monotonic_ns - now);
	return plus(timeline->created_realtime_ns, now - timeline->created_monotonic_ns);
}
