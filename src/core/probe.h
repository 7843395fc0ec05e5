/* SPDX-License-Identifier: MIT */
/*
 * What only the test build has (-DKLY_TEST); elsewhere it vanishes.
 *
 * KLY_POINT(name): a named place after an observable effect, where a test may stop, jump out of or
 * kill the writer. KLY_SWITCH(name): a safeguard that a test can take away, to see that the stress
 * tests notice.
 */
#ifndef KLY_CORE_PROBE_H
#define KLY_CORE_PROBE_H

enum kly_point {
	KLY_POINT_NONE,
	KLY_POINT_MARKED,    /* the lane is in flight, nothing else has happened */
	KLY_POINT_STAMPED,   /* the time stamp is taken */
	KLY_POINT_WRITTEN,   /* the record is written, not published */
	KLY_POINT_PUBLISHED, /* the record is published */
	KLY_POINT_CLAIMED,   /* a chunk is claimed, the lane still has its old one */
	KLY_POINT_SEALED,    /* the old chunk is sealed, the lane not yet flipped */
	KLY_POINT_FLIPPED,   /* the lane has its new chunk, the slot still names the old position */
	KLY_POINT_LEAVING,   /* a thread that ends has found a stream to leave */
};

#ifdef KLY_TEST
/* Safeguards taken away, a bit each. */
enum kly_switch {
	KLY_NO_FENCE = 1,         /* the writer's mark is not kept before what follows it */
	KLY_NO_MEMBARRIER = 2,    /* the reader looks at lanes without membarrier(2) */
	KLY_LOOK_BEFORE_MARK = 4, /* the writer takes its time before it marks its lane */
	KLY_NO_HEAL = 8,          /* lanes that were jumped out of are not won back */
	KLY_NO_REDO = 16,         /* an abandoned chunk change is not completed */
	KLY_NO_HORIZON = 32,      /* LOOP overwrites without raising the horizon */
	KLY_EARLY_RELEASE = 64,   /* the reader does not wait for lanes in flight */
};
extern unsigned kly_switches;
extern void (*kly_point_hook)(enum kly_point point);
#define KLY_SWITCH(name) ((kly_switches & (name)) != 0)
#define KLY_POINT(name)                                                                            \
	do {                                                                                       \
		if (kly_point_hook)                                                                \
			kly_point_hook(name);                                                      \
	} while (0)
#else
#define KLY_SWITCH(name) 0
#define KLY_POINT(name) ((void)0)
#endif

#endif
