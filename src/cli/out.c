/* SPDX-License-Identifier: MIT */
#include "cli/out.h"

#include <errno.h>
#include <unistd.h>

void kly_out_init(struct kly_out *out, int fd)
{
	out->used = 0;
	out->fd = fd;
	out->error = 0;
}

int kly_out_flush(struct kly_out *out)
{
	size_t done = 0;

	while (!out->error && done < out->used) {
		ssize_t n = write(out->fd, out->bytes + done, out->used - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			out->error = -errno;
	}
	out->used = 0;
	return out->error;
}

void kly_out_bytes_long(struct kly_out *out, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len > 0) {
		size_t n = kly_min(len, KLY_OUT_ROOM_MAX);
		memcpy(kly_out_room(out), from, n);
		out->used += n;
		from += n;
		len -= n;
	}
}

void kly_out_pad(struct kly_out *out, size_t n)
{
	for (; n > 0; n--)
		kly_out_char(out, ' ');
}

/*
 * Numbers. Two digits at a time, from the last to the first.
 */

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
				 "25262728293031323334353637383940414243444546474849"
				 "50515253545556575859606162636465666768697071727374"
				 "75767778798081828384858687888990919293949596979899";

/* Puts the digits in front of end; returns the first. */
static inline char *digits_before(char *end, uint64_t value)
{
	while (value >= 100) {
		end -= 2;
		memcpy(end, two_digits + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, two_digits + value * 2, 2);
	} else {
		*--end = (char)('0' + value);
	}
	return end;
}

void kly_out_unsigned(struct kly_out *out, uint64_t value)
{
	char text[20], *end = text + sizeof(text), *first = digits_before(end, value);

	kly_out_bytes(out, first, (size_t)(end - first));
}

void kly_out_signed(struct kly_out *out, int64_t value)
{
	if (value < 0)
		kly_out_char(out, '-');
	kly_out_unsigned(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void kly_out_digits(struct kly_out *out, uint64_t value, unsigned digits)
{
	char *at = kly_out_room(out), *end = at + digits;

	out->used += digits;
	for (; end - at >= 2; value /= 100) {
		end -= 2;
		memcpy(end, two_digits + value % 100 * 2, 2);
	}
	if (end > at)
		*at = (char)('0' + value % 10);
}

void kly_out_right(struct kly_out *out, uint64_t value, unsigned width)
{
	char text[32], *end = text + sizeof(text), *first = digits_before(end, value);

	while (first > text && end - first < (ptrdiff_t)width)
		*--first = ' ';
	kly_out_bytes(out, first, (size_t)(end - first));
}

static const char hex_digits[] = "0123456789abcdef";

void kly_out_hex(struct kly_out *out, uint64_t value)
{
	char text[18], *end = text + sizeof(text), *first = end;

	do {
		*--first = hex_digits[value & 15];
		value >>= 4;
	} while (value);
	*--first = 'x';
	*--first = '0';
	kly_out_bytes(out, first, (size_t)(end - first));
}

void kly_out_hex_bytes(struct kly_out *out, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char *at = kly_out_room(out);
		at[0] = hex_digits[bytes[i] >> 4];
		at[1] = hex_digits[bytes[i] & 15];
		out->used += 2;
	}
}

/*
 * Text. Plain characters are copied in one go.
 */

/* Bytes of the well-formed UTF-8 character at text (Unicode table 3-7); 0: there is none. */
static size_t utf8_character(const unsigned char *text, size_t len)
{
	unsigned char first = text[0], low = 0x80, high = 0xbf;
	size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || n > len)
		return 0;
	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (text[i] < low || text[i] > high)
			return 0;
	return n;
}

/* Bytes of the character at text if it may be shown as it is; 0: it may not. The controls from
 * U+0080 to U+009F drive terminals as well. */
static inline size_t harmless_character(const unsigned char *text, size_t len)
{
	if (*text < 0x80)
		return *text >= ' ' && *text != 127 && *text != '\\';
	if (text[0] == 0xc2 && len > 1 && text[1] < 0xa0)
		return 0;
	return utf8_character(text, len);
}

static size_t escape(struct kly_out *out, unsigned char c)
{
	static const char letters[] = "abtnvfr"; /* 7 to 13 */
	char *at = kly_out_room(out);

	at[0] = '\\';
	if (c >= 7 && c <= 13)
		at[1] = letters[c - 7];
	else if (c == '\\' || c == '"' || c == '\'')
		at[1] = (char)c;
	else
		at[1] = 'x';
	out->used += 2;
	if (at[1] != 'x')
		return 2;
	kly_out_hex_bytes(out, &c, 1);
	return 4;
}

size_t kly_out_escaped(struct kly_out *out, const char *text, size_t len, char quote)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + len, *plain = at;
	size_t columns = 0;

	while (at < end) {
		size_t n = *at == (unsigned char)quote ? 0
						       : harmless_character(at, (size_t)(end - at));
		if (n) {
			at += n;
			columns++;
			continue;
		}
		kly_out_bytes(out, plain, (size_t)(at - plain));
		columns += escape(out, *at);
		plain = ++at;
	}
	kly_out_bytes(out, plain, (size_t)(end - plain));
	return columns;
}

static void escape_json(struct kly_out *out, unsigned char c)
{
	if (c == '"' || c == '\\') {
		kly_out_char(out, '\\');
		kly_out_char(out, (char)c);
	} else if (c < 0x80) {
		kly_out_text(out, "\\u00");
		kly_out_hex_bytes(out, &c, 1);
	} else {
		kly_out_text(out, "\xef\xbf\xbd"); /* U+FFFD */
	}
}

void kly_out_json(struct kly_out *out, const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + len, *plain = at;

	kly_out_char(out, '"');
	while (at < end) {
		size_t n = *at == '"' ? 0 : harmless_character(at, (size_t)(end - at));
		if (!n && *at >= 0x80)
			n = utf8_character(at, (size_t)(end - at));
		if (n) {
			at += n;
			continue;
		}
		kly_out_bytes(out, plain, (size_t)(at - plain));
		escape_json(out, *at);
		plain = ++at;
	}
	kly_out_bytes(out, plain, (size_t)(end - plain));
	kly_out_char(out, '"');
}
