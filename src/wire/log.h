/* SPDX-License-Identifier: MIT */
/*
 * The log file: a head, then packets until the file ends. docs/format.md says the same for those
 * who write a reader of their own.
 *
 *      0   struct kly_wire_log_head
 *    512   packets: struct kly_wire_packet, body, zero bytes up to the next multiple of 8
 *
 * Order. An EVENTS packet is a run (record.h): sorted in itself, not against others. A MARK says
 * that every event up to its end time lies in packets before it; so a reader merges the runs before
 * a mark and may give out all events up to the mark. What is later waits for the next mark. An
 * event that comes too late all the same is given out at the time already reached.
 */
#ifndef KLY_WIRE_LOG_H
#define KLY_WIRE_LOG_H

#include "wire/loss.h"
#include "wire/record.h"
#include "wire/snapshot.h"
#include "wire/types.h"

#define KLY_LOG_MAGIC "\x89KLY\r\n\x1a\n" /* 8 bytes; broken by text-mode transfers */
#define KLY_LOG_VERSION 1u
#define KLY_LOG_BYTE_ORDER 0x01020304u
#define KLY_PACKET_MAGIC 0x544b504bu /* "KPKT" */
#define KLY_PACKET_BODY_MAX (16u << 20)

/* What happens when the log has log_max_bytes of events. */
enum kly_log_policy {
	KLY_LOG_POLICY_LOOP = 1,
	KLY_LOG_POLICY_UNTIL_FULL = 2,
	KLY_LOG_POLICY_APPEND = 3, /* it has no limit */
};

/* What a forked child of the traced process does. */
enum kly_log_inheritance {
	KLY_LOG_CLOSE_FOR_CHILD = 1,
	KLY_LOG_INHERITED = 2,
};

struct kly_wire_log_head {
	char magic[8];
	uint32_t version;
	uint32_t head_bytes; /* of this struct: where the packets begin */
	uint32_t byte_order;
	uint32_t machine; /* e_machine of ELF */
	uint64_t stream_id;
	uint64_t ticks_per_second; /* nominal; snapshots are exact */
	uint16_t clock;            /* enum kly_clock */
	uint16_t policy;           /* enum kly_policy of the stream */
	uint32_t max_data;
	uint64_t min_bytes; /* size of the stream */
	uint64_t log_max_bytes;
	uint32_t log_policy;  /* enum kly_log_policy, 0 = not known */
	uint32_t inheritance; /* enum kly_log_inheritance, 0 = not known */
	uint32_t pid; /* of the traced process */
	uint32_t stream_flags;
	struct kly_wire_snapshot created;
	char boot_id[40]; /* with a NUL */
	char name[256];
	char writer[64]; /* version of the program that wrote the log */
	char unused[36];
	uint32_t crc; /* CRC32C of the bytes before */
};
static_assert(sizeof(struct kly_wire_log_head) == 512, "part of the format");
static_assert(offsetof(struct kly_wire_log_head, stream_id) == 24, "part of the format");
static_assert(offsetof(struct kly_wire_log_head, clock) == 40, "part of the format");
static_assert(offsetof(struct kly_wire_log_head, created) == 80, "part of the format");
static_assert(offsetof(struct kly_wire_log_head, name) == 152, "part of the format");
static_assert(offsetof(struct kly_wire_log_head, crc) == 508, "part of the format");

enum kly_packet_kind {
	KLY_PACKET_EVENTS = 1,   /* struct kly_wire_log_run, then records */
	KLY_PACKET_MARK = 2,     /* no body; end = the time up to which all is there */
	KLY_PACKET_TYPES = 3,    /* struct kly_wire_log_type ... */
	KLY_PACKET_SNAPSHOT = 4, /* struct kly_wire_snapshot ... */
	KLY_PACKET_LOSS = 5,     /* struct kly_wire_log_loss ...; begin, end: when it happened */
	KLY_PACKET_PROCESS = 6,  /* struct kly_wire_log_process ... */
	KLY_PACKET_THREADS = 7,  /* struct kly_wire_thread ...: names found or changed later */
	KLY_PACKET_END = 8,      /* struct kly_wire_log_end; nothing follows */
	KLY_PACKET_MODULES = 9,  /* reserved */
	KLY_PACKET_INDEX = 10,   /* reserved */
};

#define KLY_PACKET_ZSTD 1u /* flag, reserved: the body is compressed */

struct kly_wire_packet {
	uint32_t magic;
	uint32_t crc;        /* CRC32C of what follows, up to the end of the body */
	uint32_t body_bytes; /* without padding */
	uint16_t kind;
	uint16_t flags;
	uint64_t sequence; /* 0, 1, 2 ... */
	uint64_t begin;    /* EVENTS: time of the first event; LOSS: see there; else of writing */
	uint64_t end;      /* EVENTS: time of the last event */
};
static_assert(sizeof(struct kly_wire_packet) == 40, "part of the format");
static_assert(offsetof(struct kly_wire_packet, kind) == 12, "part of the format");
static_assert(offsetof(struct kly_wire_packet, begin) == 24, "part of the format");

/* Head of an EVENTS body: what is true at its first record. */
struct kly_wire_log_run {
	uint64_t base;
	uint32_t slot; /* writer slot * KLY_LANES + lane, 0xffffffff = none */
	uint32_t events;
	struct kly_wire_thread thread;
};
static_assert(sizeof(struct kly_wire_log_run) == 48, "part of the format");

struct kly_wire_log_type {
	uint16_t type;
	uint16_t name_bytes;
	uint16_t fields_bytes;
	uint16_t flags; /* none yet */
	/* name, fields: no NUL; zero bytes up to the next multiple of 8 */
};
static_assert(sizeof(struct kly_wire_log_type) == 8, "part of the format");

/* OVERWRITTEN: events up to the packet's end time are incomplete; readers leave out those that
 * were not given out before. */
struct kly_wire_log_loss {
	uint32_t cause; /* enum kly_loss */
	uint32_t unused0;
	uint64_t events;
};
static_assert(sizeof(struct kly_wire_log_loss) == 16, "part of the format");

struct kly_wire_log_process {
	uint32_t pid; /* in the recorder's pid namespace */
	uint32_t parent_pid;
	uint64_t pid_namespace;
	uint64_t start_time; /* clock ticks after boot */
	uint32_t own_pid;    /* in its own pid namespace */
	uint32_t incarnation;
	uint16_t exe_bytes;
	uint16_t args_bytes;
	uint32_t unused0;
	/* exe and a NUL; args as in /proc/PID/cmdline, a NUL after each; zero bytes up to the next
	 * multiple of 8. exe_bytes and args_bytes count the NULs. */
};
static_assert(sizeof(struct kly_wire_log_process) == 40, "part of the format");

struct kly_wire_log_end {
	uint64_t events; /* in EVENTS packets */
	uint64_t lost[KLY_LOSS_CAUSES]; /* totals of the LOSS packets */
	uint32_t running;               /* 1 = the stream was still running */
	uint32_t unused0;
};
static_assert(sizeof(struct kly_wire_log_end) == 80, "part of the format");

#endif
