/* SPDX-License-Identifier: MIT */
/*
 * Output by the million lines: one big buffer, numbers formatted by hand.
 *
 * Every kly_out_ function writes behind the last one. None fails: when the descriptor can't be
 * written to any more, `error` is set and the output goes nowhere; who writes a lot looks at it
 * from time to time.
 */
#ifndef KLY_CLI_OUT_H
#define KLY_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define KLY_OUT_BYTES (256u << 10)
#define KLY_OUT_ROOM_MAX 512u

struct kly_out {
	/* Between two calls used <= KLY_OUT_BYTES. The bytes behind serve kly_out_room(). */
	char bytes[KLY_OUT_BYTES + KLY_OUT_ROOM_MAX];
	size_t used;
	int fd;
	int error; /* -Exxx of write(2); -EPIPE: nobody reads any more */
};

void kly_out_init(struct kly_out *out, int fd);
/* Writes what is in the buffer. Returns out->error. */
int kly_out_flush(struct kly_out *out);

/* Where up to KLY_OUT_ROOM_MAX bytes may be put; out->used has to be raised by what was. */
static inline char *kly_out_room(struct kly_out *out)
{
	if (KLY_UNLIKELY(out->used >= KLY_OUT_BYTES))
		(void)kly_out_flush(out);
	return out->bytes + out->used;
}

void kly_out_bytes_long(struct kly_out *out, const void *bytes, size_t len);

static inline void kly_out_bytes(struct kly_out *out, const void *bytes, size_t len)
{
	if (KLY_UNLIKELY(len > KLY_OUT_ROOM_MAX)) {
		kly_out_bytes_long(out, bytes, len);
		return;
	}
	memcpy(kly_out_room(out), bytes, len);
	out->used += len;
}

static inline void kly_out_text(struct kly_out *out, const char *text)
{
	kly_out_bytes(out, text, strlen(text));
}

static inline void kly_out_char(struct kly_out *out, char c)
{
	*kly_out_room(out) = c;
	out->used++;
}

/* n spaces. */
void kly_out_pad(struct kly_out *out, size_t n);

void kly_out_unsigned(struct kly_out *out, uint64_t value);
void kly_out_signed(struct kly_out *out, int64_t value);
/* As many digits as given, at most 20, with zeros in front. */
void kly_out_digits(struct kly_out *out, uint64_t value, unsigned digits);
/* Right-aligned in at least `width` columns, at most 32. */
void kly_out_right(struct kly_out *out, uint64_t value, unsigned width);
/* "0x" and no zeros in front. */
void kly_out_hex(struct kly_out *out, uint64_t value);
/* Two digits a byte. */
void kly_out_hex_bytes(struct kly_out *out, const uint8_t *bytes, size_t len);

/*
 * Text that may be anything, made harmless for a terminal: control characters, what is not UTF-8,
 * and backslashes become \n, \t, \xNN, \\. With a quote ('"' or '\''; 0 = none) that is escaped
 * too. Returns the columns taken, of which each character counts as one.
 */
size_t kly_out_escaped(struct kly_out *out, const char *text, size_t len, char quote);

/* A JSON string with its quotes; what is not UTF-8 becomes U+FFFD. */
void kly_out_json(struct kly_out *out, const char *text, size_t len);

#endif
