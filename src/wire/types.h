/* SPDX-License-Identifier: MIT */
/*
 * Event types: a number, a name, optional fields. The numbers of one family of processes live in
 * one registry (registry.h) and are never used again for another name.
 *
 *   0            none
 *   1 .. 1023    system events, numbers fixed here for good
 *   1024         the unnamed user event
 *   1025 .. 4095 user events in the order in which their names were opened
 *
 * Fields are text, a line each: `TYPE NAME[ FORMAT]\n`. TYPE is one of u8 u16 u32 u64 i8 i16 i32
 * i64 f64 ptr str bytes; FORMAT is one printf conversion of that type. A payload holds the values
 * in this order without padding, in native byte order; str and bytes are a uint16_t length and as
 * many bytes, without a NUL. A type without fields has an opaque payload. A name, once released,
 * keeps its fields; new ones come at the end, so a payload may end after any field.
 */
#ifndef KLY_WIRE_TYPES_H
#define KLY_WIRE_TYPES_H

#define KLY_TYPES_MAX 4096u
#define KLY_TYPE_NAME_MAX 255u
#define KLY_TYPE_FIELDS_MAX 4095u /* bytes of field text */

enum kly_type {
	KLY_TYPE_NONE = 0,
	KLY_TYPE_START = 1,
	KLY_TYPE_STOP = 2,
	KLY_TYPE_FILTER = 3,
	KLY_TYPE_OVERFLOW = 4,
	KLY_TYPE_RESUME = 5,
	KLY_TYPE_FLUSH_START = 6,
	KLY_TYPE_FLUSH_STOP = 7,
	KLY_TYPE_ERROR = 8,
	KLY_TYPE_UNNAMED = 1024,
	KLY_TYPE_USER = 1025, /* the first of the named user types */
};

#endif
