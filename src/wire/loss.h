/* SPDX-License-Identifier: MIT */
/* Why an event is not there. The numbers are part of the stream's and the log's format. */
#ifndef KLY_WIRE_LOSS_H
#define KLY_WIRE_LOSS_H

enum kly_loss {
	KLY_LOSS_FULL = 0,        /* the stream had no room: until-full and flush */
	KLY_LOSS_OVERWRITTEN = 1, /* newer events took the room: loop */
	KLY_LOSS_DEPTH = 2,       /* more nested signal handlers than lanes */
	KLY_LOSS_SLOTS = 3,       /* more threads than writer slots */
	KLY_LOSS_MEMORY = 4,      /* no memory for a new writer's chunks */
	KLY_LOSS_DIED = 5,        /* the writer died, or was jumped out of, inside the call */
	KLY_LOSS_DAMAGED = 6,     /* what was found is not a record */
	KLY_LOSS_DISK = 7,        /* the log could not be written */
	KLY_LOSS_CAUSES = 8,
};

#endif
