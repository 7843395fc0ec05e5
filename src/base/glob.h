/* SPDX-License-Identifier: MIT */
/*
 * Shell patterns for names: `*` any text, `?` one character, `[a-z]` one of these, `[!a-z]` none
 * of these, `\x` x itself. Everything else stands for itself, a `[` without its `]` too.
 *
 * A character is one of UTF-8, in brackets a byte. Async-signal-safe: no memory, no recursion, and
 * the lengths bound the steps.
 */
#ifndef KLY_BASE_GLOB_H
#define KLY_BASE_GLOB_H

#include <stdbool.h>

/* Does the pattern match the whole text? */
bool kly_glob_match(const char *pattern, const char *text);

#endif
