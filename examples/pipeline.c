/* SPDX-License-Identifier: MIT */
/*
 * Finds files with the same content below a directory, and shows how a pipeline of threads is
 * traced:
 *
 *	walk  --found-->  hash 1 .. hash N  --hashed-->  order
 *
 * One thread walks the tree in the order of names and numbers the files, N hash their contents, one
 * brings the results back into the order of their numbers and looks for files with the same hash,
 * which it compares byte by byte. So the output is the same in every run, whatever the threads do.
 * The queues between them are bounded; a thread stalls where the next one is slower.
 *
 *	pipeline [DIRECTORY [HASHERS]]
 *
 * A trace answers what the output does not: which queue is full and which empty, who waits for
 * whom and how long, and which file holds up the results of all that come behind it.
 *
 *	kilroy record -- ./pipeline /usr/include 4
 *	kilroy print --keep 'pipeline.stall' pipeline.kly
 */
#define _GNU_SOURCE 1 /* pthread_setname_np() */

#include <kilroy/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

KILROY_EVENT(found, "pipeline.file.found", (u32, file), (u64, bytes), (str, path));
KILROY_EVENT(put, "pipeline.queue.put", (str, queue), (u32, file), (u32, depth));
KILROY_EVENT(take, "pipeline.queue.take", (str, queue), (u32, file), (u32, depth));
KILROY_EVENT(stall, "pipeline.stall", (str, queue), (str, why), (u64, ns));
KILROY_EVENT(hash_begin, "pipeline.hash.begin", (u32, file), (u64, bytes), (str, path));
KILROY_EVENT(
	hash_end, "pipeline.hash.end", (u32, file), (u64, hash, "%016lx"), (i32, error), (u64, ns));
KILROY_EVENT(held, "pipeline.order.held", (u32, file), (u32, waits_for), (u32, held));
KILROY_EVENT(duplicate, "pipeline.duplicate", (u64, bytes), (str, path), (str, original));

enum {
	QUEUE_FILES = 64,
	HASHERS_MAX = 64,
	BLOCK_BYTES = 1 << 16,
	BUCKETS = 1 << 14, /* a power of two */
	SHOWN = 10,
};

/* Belongs to one thread at a time; the queues hand it on. The last owner, order, keeps all. */
struct file {
	char *path;
	uint32_t number;
	dev_t device;
	ino_t inode;
	uint64_t bytes;
	uint64_t hash;
	int error; /* errno of what failed; 0 = hash is valid */

	struct file *next_in_bucket;
	struct file *original; /* a file with the same content and a lower number, or NULL */
};

/* A ring: files[first], files[first + 1] ... are waiting. All under the lock. */
struct queue {
	const char *name;
	pthread_mutex_t lock;
	pthread_cond_t not_full, not_empty;
	struct file *files[QUEUE_FILES];
	unsigned first, depth;
	unsigned writers; /* threads that may still put; 0 = what is there is all */
};

static struct queue found_queue = {
	.name = "found",
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.not_full = PTHREAD_COND_INITIALIZER,
	.not_empty = PTHREAD_COND_INITIALIZER,
};

static struct queue hashed_queue = {
	.name = "hashed",
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.not_full = PTHREAD_COND_INITIALIZER,
	.not_empty = PTHREAD_COND_INITIALIZER,
};

static const char *root = "/usr/include";
static unsigned hashers = 3;

/* Of the thread `order`; main reads it when that has ended. files[i]->number == i. */
static struct {
	struct file **files;
	uint32_t count, room;
	uint32_t duplicates, unreadable;
	uint64_t bytes, duplicate_bytes;
	struct file *buckets[BUCKETS];
} result;

static void die(const char *what)
{
	fprintf(stderr, "pipeline: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *checked(void *memory)
{
	if (!memory)
		die("memory");
	return memory;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Queues
 */

static void wait_for(struct queue *q, pthread_cond_t *condition, const char *why)
{
	uint64_t begin_ns = now_ns();

	pthread_cond_wait(condition, &q->lock);
	KILROY_RECORD(stall, q->name, why, now_ns() - begin_ns);
}

static void queue_put(struct queue *q, struct file *file)
{
	pthread_mutex_lock(&q->lock);
	while (q->depth == QUEUE_FILES)
		wait_for(q, &q->not_full, "full");
	q->files[(q->first + q->depth++) % QUEUE_FILES] = file;
	KILROY_RECORD(put, q->name, file->number, q->depth);
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
}

/* The next file, or NULL when all writers have ended and nothing is left. */
static struct file *queue_take(struct queue *q)
{
	struct file *file = NULL;

	pthread_mutex_lock(&q->lock);
	while (q->depth == 0 && q->writers > 0)
		wait_for(q, &q->not_empty, "empty");
	if (q->depth > 0) {
		file = q->files[q->first];
		q->first = (q->first + 1) % QUEUE_FILES;
		q->depth--;
		KILROY_RECORD(take, q->name, file->number, q->depth);
		pthread_cond_signal(&q->not_full);
	}
	pthread_mutex_unlock(&q->lock);
	return file;
}

static void queue_leave(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	if (--q->writers == 0)
		pthread_cond_broadcast(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
}

/*
 * Walk
 */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_error(const FTSENT *entry)
{
	return entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR ||
	       entry->fts_info == FTS_ERR;
}

static void warn_of(const FTSENT *entry)
{
	errno = entry->fts_errno;
	if (entry->fts_level == FTS_ROOTLEVEL)
		die(entry->fts_path);
	fprintf(stderr, "pipeline: %s: %s\n", entry->fts_path, strerror(errno));
}

static struct file *new_file(const FTSENT *entry, uint32_t number)
{
	struct file *file = checked(calloc(1, sizeof(*file)));

	file->path = checked(strdup(entry->fts_path));
	file->number = number;
	file->device = entry->fts_statp->st_dev;
	file->inode = entry->fts_statp->st_ino;
	file->bytes = (uint64_t)entry->fts_statp->st_size;
	return file;
}

static void *walk(void *unused)
{
	char *const roots[] = {(char *)root, NULL};
	uint32_t number = 0;

	(void)unused;
	pthread_setname_np(pthread_self(), "walk");
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	if (!tree)
		die(root);

	for (FTSENT *entry; (entry = fts_read(tree));) {
		if (is_error(entry))
			warn_of(entry);
		if (entry->fts_info != FTS_F || entry->fts_statp->st_size == 0)
			continue;
		struct file *file = new_file(entry, number++);
		KILROY_RECORD(found, file->number, file->bytes, file->path);
		queue_put(&found_queue, file);
	}
	fts_close(tree);
	queue_leave(&found_queue);
	return NULL;
}

/*
 * Hash
 */

/* Reads until the block is full or the file ends. Bytes read, or -1. */
static ssize_t read_block(int fd, void *block)
{
	size_t have = 0;

	while (have < BLOCK_BYTES) {
		ssize_t n = read(fd, (char *)block + have, BLOCK_BYTES - have);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* Good enough to tell files apart: those with the same hash are compared. The block is zero up to
 * the next multiple of 8. */
static uint64_t hash_block(uint64_t hash, const uint64_t *block, size_t len)
{
	for (size_t i = 0; i < (len + 7) / 8; i++) {
		hash = (hash ^ block[i]) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Sets file->hash. 0, or errno. */
static int hash_file(struct file *file)
{
	uint64_t block[BLOCK_BYTES / 8];
	uint64_t hash = file->bytes;
	ssize_t len;

	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	while ((len = read_block(fd, block)) > 0) {
		memset((char *)block + len, 0, -(size_t)len % 8);
		hash = hash_block(hash, block, (size_t)len);
	}
	int error = len < 0 ? errno : 0;
	close(fd);
	file->hash = hash;
	return error;
}

static void *hash(void *number)
{
	char name[16];
	struct file *file;

	snprintf(name, sizeof(name), "hash %d", (int)(intptr_t)number);
	pthread_setname_np(pthread_self(), name);
	while ((file = queue_take(&found_queue))) {
		uint64_t begin_ns = now_ns();

		KILROY_RECORD(hash_begin, file->number, file->bytes, file->path);
		file->error = hash_file(file);
		KILROY_RECORD(hash_end, file->number, file->hash, file->error, now_ns() - begin_ns);
		queue_put(&hashed_queue, file);
	}
	queue_leave(&hashed_queue);
	return NULL;
}

/*
 * Order
 */

static bool same_blocks(int a, int b)
{
	static char block_a[BLOCK_BYTES], block_b[BLOCK_BYTES]; /* only `order` comes here */
	ssize_t len_a, len_b;

	do {
		len_a = read_block(a, block_a);
		len_b = read_block(b, block_b);
		if (len_a < 0 || len_a != len_b || memcmp(block_a, block_b, (size_t)len_a) != 0)
			return false;
	} while (len_a > 0);
	return true;
}

static bool same_content(const struct file *a, const struct file *b)
{
	int fd_a = open(a->path, O_RDONLY | O_CLOEXEC);
	int fd_b = open(b->path, O_RDONLY | O_CLOEXEC);
	bool same = fd_a >= 0 && fd_b >= 0 && same_blocks(fd_a, fd_b);

	if (fd_a >= 0)
		close(fd_a);
	if (fd_b >= 0)
		close(fd_b);
	return same;
}

static bool is_duplicate(const struct file *file, const struct file *of)
{
	if (file->hash != of->hash || file->bytes != of->bytes)
		return false;
	if (file->inode == of->inode && file->device == of->device)
		return false; /* two names of one file waste nothing */
	return same_content(file, of);
}

/* Looks for the file among those before it; files with a content of their own join the table. */
static void judge(struct file *file)
{
	struct file **bucket = &result.buckets[file->hash % BUCKETS];

	result.bytes += file->bytes;
	if (file->error) {
		result.unreadable++;
		return;
	}
	for (struct file *other = *bucket; other; other = other->next_in_bucket) {
		if (!is_duplicate(file, other))
			continue;
		file->original = other;
		result.duplicates++;
		result.duplicate_bytes += file->bytes;
		KILROY_RECORD(duplicate, file->bytes, file->path, other->path);
		return;
	}
	file->next_in_bucket = *bucket;
	*bucket = file;
}

static void keep(struct file *file)
{
	while (file->number >= result.room) {
		uint32_t room = result.room ? 2 * result.room : 1024;

		result.files = checked(realloc(result.files, room * sizeof(*result.files)));
		memset(result.files + result.room, 0, (room - result.room) * sizeof(*result.files));
		result.room = room;
	}
	result.files[file->number] = file;
}

/* Judges each file once all before it were judged; those that come early are held. */
static void *order(void *unused)
{
	struct file *file;
	uint32_t held_files = 0;

	(void)unused;
	pthread_setname_np(pthread_self(), "order");
	while ((file = queue_take(&hashed_queue))) {
		keep(file);
		held_files++;
		if (file->number != result.count)
			KILROY_RECORD(held, file->number, result.count, held_files);
		while (result.count < result.room && result.files[result.count]) {
			judge(result.files[result.count++]);
			held_files--;
		}
	}
	return NULL;
}

/*
 * Report
 */

static int by_size(const void *a, const void *b)
{
	const struct file *x = *(struct file *const *)a, *y = *(struct file *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->number < y->number ? -1 : 1;
}

static void report(void)
{
	struct file **list = checked(calloc(result.duplicates + 1, sizeof(*list)));
	uint32_t listed = 0;

	for (uint32_t i = 0; i < result.count; i++)
		if (result.files[i]->original)
			list[listed++] = result.files[i];
	qsort(list, listed, sizeof(*list), by_size);

	printf("%s: %" PRIu32 " files, %.1f MB; %" PRIu32 " duplicates waste %.1f MB; %" PRIu32
	       " unreadable\n",
		root, result.count, (double)result.bytes / 1e6, result.duplicates,
		(double)result.duplicate_bytes / 1e6, result.unreadable);
	for (uint32_t i = 0; i < listed && i < SHOWN; i++)
		printf("%10" PRIu64 "  %s\n            = %s\n", list[i]->bytes, list[i]->path,
			list[i]->original->path);
	if (listed > SHOWN)
		printf("and %" PRIu32 " smaller ones\n", listed - SHOWN);
	free(list);
}

static void free_files(void)
{
	for (uint32_t i = 0; i < result.count; i++) {
		free(result.files[i]->path);
		free(result.files[i]);
	}
	free(result.files);
}

static pthread_t start(void *(*run)(void *), intptr_t argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, run, (void *)argument);
	if (errno)
		die("thread");
	return thread;
}

int main(int argc, char **argv)
{
	pthread_t threads[HASHERS_MAX + 2];
	unsigned count = 0;

	if (argc > 1)
		root = argv[1];
	if (argc > 2)
		hashers = (unsigned)atoi(argv[2]);
	if (argc > 3 || hashers < 1 || hashers > HASHERS_MAX) {
		fprintf(stderr, "usage: pipeline [DIRECTORY [HASHERS]], 1 to %d hashers\n",
			HASHERS_MAX);
		return 2;
	}

	found_queue.writers = 1;
	hashed_queue.writers = hashers;
	threads[count++] = start(order, 0);
	for (unsigned i = 1; i <= hashers; i++)
		threads[count++] = start(hash, (intptr_t)i);
	threads[count++] = start(walk, 0);
	while (count > 0)
		pthread_join(threads[--count], NULL);

	report();
	free_files();
	return 0;
}
