/* SPDX-License-Identifier: MIT */
/*
 * sysconf(), because only this library knows that the options of <trace.h> are there. All other
 * names go to the C library's own entry, which it exports beside the one that programs call; so
 * there is nothing to look up, and it works from the first instruction of a program on, and where
 * the library was loaded late. May be called before any constructor has run: touches no data.
 */
#include "base/util.h"
#include "trace.h"

#include <unistd.h>

extern long __sysconf(int name);

KLY_API long sysconf(int name)
{
	switch (name) {
	case _SC_TRACE:
		return _POSIX_TRACE;
	case _SC_TRACE_EVENT_FILTER:
		return _POSIX_TRACE_EVENT_FILTER;
	case _SC_TRACE_INHERIT:
		return _POSIX_TRACE_INHERIT;
	case _SC_TRACE_LOG:
		return _POSIX_TRACE_LOG;
	case _SC_TRACE_EVENT_NAME_MAX:
		return TRACE_EVENT_NAME_MAX;
	case _SC_TRACE_NAME_MAX:
		return TRACE_NAME_MAX;
	case _SC_TRACE_SYS_MAX:
		return TRACE_SYS_MAX;
	case _SC_TRACE_USER_EVENT_MAX:
		return TRACE_USER_EVENT_MAX;
	}
	return __sysconf(name);
}
