/* SPDX-License-Identifier: MIT */
/*
 * See names.h. A bit for each type that the process has opened, and their number. At the limit
 * names are only looked up, so that refused names use no numbers up. Threads that open the last
 * names at the same moment may each be refused one; no more than the limit are ever kept.
 */
#include "posix/names.h"
#include "core/process.h"

#include <errno.h>
#include <string.h>

#define NAMES_MAX (TRACE_USER_EVENT_MAX - 1)

static uint64_t opened[KLY_TYPES_MAX / 64];
static uint32_t opened_count;

static bool is_opened(uint32_t type)
{
	/* Acquire, pairs with the swap in keep(): who sees the bit sees the type's name. */
	return type < KLY_TYPE_UNNAMED || kly_load_acquire(&opened[type / 64]) >> type % 64 & 1;
}

/* Books the type; false: that would be one too many. */
static bool keep(uint32_t type)
{
	uint64_t bit = UINT64_C(1) << type % 64;

	if (type <= KLY_TYPE_UNNAMED || kly_or_acq_rel(&opened[type / 64], bit) & bit)
		return true;
	/* Relaxed: only the sum counts. */
	if (kly_add_relaxed(&opened_count, 1) < NAMES_MAX)
		return true;
	(void)kly_and_acq_rel(&opened[type / 64], ~bit);
	(void)kly_add_relaxed(&opened_count, -1u);
	return false;
}

/* For a process at the limit: a name that it has, else the unnamed type. */
static int look_up(const char *name, uint32_t *ret_type)
{
	size_t len = strnlen(name, KLY_TYPE_NAME_MAX + 1);

	if (!len)
		return -EINVAL;
	if (len > KLY_TYPE_NAME_MAX)
		return -ENAMETOOLONG;
	if (!kly_registry_find(&kly_process.registry, name, ret_type) || !is_opened(*ret_type))
		*ret_type = KLY_TYPE_UNNAMED;
	return 0;
}

int kly_names_open(const char *name, trace_event_id_t *ret_type)
{
	uint32_t type;
	int r;

	/* Relaxed: being late here costs a number, not correctness. */
	if (kly_load_relaxed(&opened_count) >= NAMES_MAX)
		return look_up(name, ret_type);
	r = kly_process_open_type(name, NULL, &type);
	if (r == -ENAMETOOLONG || r == -EINVAL)
		return r;
	*ret_type = r == 0 && keep(type) ? type : (uint32_t)KLY_TYPE_UNNAMED;
	return 0;
}
