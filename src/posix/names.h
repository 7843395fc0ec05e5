/* SPDX-License-Identifier: MIT */
/*
 * Names that this process has opened by posix_trace_eventid_open() and the like, and how many more
 * it may: TRACE_USER_EVENT_MAX user event types with the unnamed one. The registry may know more,
 * of other processes of the family. A forked child starts with its parent's names, a new image with
 * none.
 */
#ifndef KLY_POSIX_NAMES_H
#define KLY_POSIX_NAMES_H

#include "trace.h"

/*
 * Opens a name in this process. A name beyond the limit, or for which there is no room, gives the
 * unnamed type. 0; -ENAMETOOLONG; -EINVAL: empty.
 */
int kly_names_open(const char *name, trace_event_id_t *ret_type);

#endif
