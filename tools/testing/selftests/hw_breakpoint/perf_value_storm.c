// SPDX-License-Identifier: GPL-2.0
/*
 * Values while many threads write, while the object changes, and while its memory goes away;
 * see values.h.
 *
 * The rule: each change is told once, by however many threads, also if the object is long. A
 * record is about one object, whichever shapes the event is modified to and from. A page that
 * is not there is unknown.
 */
#include <linux/memfd.h>

#include "values.h"

static volatile bool done;

/* ------------------------------------------------------------------- many threads */

#define MAX_THREADS	64
#define MAX_STORES	1024
/* A long object is of three pieces: 4, 8 and 8 bytes. */
#define OFFSET		4
#define MAX_WORDS	5

struct writer {
	__u32 *mem;
	unsigned int id, words, stores;
	int cpu;
};

/* Each value that is stored in a word is another one. */
static void *write_words(void *arg)
{
	struct writer *w = arg;
	unsigned int seed = w->id;

	bp_pin(w->cpu);
	for (unsigned int i = 1; i <= w->stores; i++) {
		store32(w->mem + bp_random(&seed) % w->words, w->id << 16 | i);
		if (i % 4 == w->id % 4)
			sched_yield();
	}
	return NULL;
}

struct chain {
	struct hit hit[MAX_STORES + 1];
	unsigned int len;
	int nr;
};

static bool is_same(const struct chain *chain, const __u32 *a, const __u32 *b)
{
	return !memcmp(a, b, chain->len);
}

/* As each value is another one, each has at most one record that changes it. */
static const __u32 *follow(const struct chain *chain, const __u32 *value, int *nr)
{
	int i;

	for (*nr = 0; ; ++*nr) {
		for (i = 0; i < chain->nr; i++) {
			if (is_same(chain, chain->hit[i].words[0], value) &&
			    !is_same(chain, chain->hit[i].words[1], value))
				break;
		}
		if (i == chain->nr || *nr > chain->nr)
			return value;
		value = chain->hit[i].words[1];
	}
}

FIXTURE(crowd)
{
	__u32 *object;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
};

FIXTURE_VARIANT(crowd)
{
	unsigned int threads, stores, words;
	__u64 config;
	bool inherit;
};

#define WORD	.threads = 4, .stores = 200, .words = 1
#define OBJECT	.threads = MAX_THREADS, .stores = 16, .words = MAX_WORDS

FIXTURE_VARIANT_ADD(crowd, word_of_a_process) { WORD, .config = BP_PROCESS };
FIXTURE_VARIANT_ADD(crowd, word_of_a_process_changes) { WORD, .config = BP_PROCESS | CHANGED };
FIXTURE_VARIANT_ADD(crowd, word_inherited) { WORD, .inherit = true };
FIXTURE_VARIANT_ADD(crowd, word_inherited_flexible) {
	WORD, .config = BP_FLEXIBLE | CHANGED, .inherit = true
};
FIXTURE_VARIANT_ADD(crowd, object_of_a_process) { OBJECT, .config = BP_PROCESS };
FIXTURE_VARIANT_ADD(crowd, object_of_a_process_changes) { OBJECT, .config = BP_PROCESS | CHANGED };
FIXTURE_VARIANT_ADD(crowd, object_of_a_process_flexible) {
	OBJECT, .config = BP_PROCESS | BP_FLEXIBLE
};
FIXTURE_VARIANT_ADD(crowd, object_inherited) { OBJECT, .inherit = true };

FIXTURE_SETUP(crowd)
{
	char *mem = bp_map_page(PROT_READ | PROT_WRITE);

	ASSERT_NE(NULL, mem);
	if (variant->words > 1 && bp_read_number(BP_PMU "/caps/max_length") < 32)
		SKIP(return, "needs breakpoints of several registers");
	self->object = (__u32 *)(mem + OFFSET);
	self->cpus = bp_online_cpus();
	self->attr = value_attr(self->object);
	self->attr.bp_len = variant->words * sizeof(__u32);
	self->attr.config |= variant->config;
	self->attr.inherit = variant->inherit;
}

FIXTURE_TEARDOWN(crowd)
{
	bp_teardown(_metadata);
}

/* One event for each CPU, as profilers open them; together they tell each change once. */
TEST_F(crowd, chain_is_unbroken)
{
	static const __u32 zeros[MAX_WORDS];
	static struct chain chain;
	static union bp_record rec;
	struct writer w[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	struct bp_ring ring[BP_MAX_CPUS];
	long long hits = 0, filtered = 0;
	int fd[BP_MAX_CPUS], nr, changes = 0;

	for (int i = 0; i < self->cpus.nr; i++) {
		fd[i] = bp_open(&self->attr, 0, self->cpus.cpu[i]);
		ASSERT_GE(fd[i], 0);
		ASSERT_EQ(0, bp_ring_map(&ring[i], fd[i], 32, PROT_READ | PROT_WRITE));
	}
	for (unsigned int i = 0; i < variant->threads; i++) {
		w[i] = (struct writer) { self->object, i + 1, variant->words, variant->stores,
					 self->cpus.cpu[i % self->cpus.nr] };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, write_words, &w[i]));
	}
	for (unsigned int i = 0; i < variant->threads; i++)
		pthread_join(thread[i], NULL);

	chain.nr = 0;
	chain.len = self->attr.bp_len;
	for (int i = 0; i < self->cpus.nr; i++) {
		while (chain.nr < (int)ARRAY_SIZE(chain.hit) &&
		       next_hit(&ring[i], &rec, &chain.hit[chain.nr]))
			chain.nr++;
		hits += bp_count(fd[i]);
		if (self->attr.config & CHANGED)
			filtered += silent(fd[i]);
		bp_ring_unmap(&ring[i]);
	}
	EXPECT_EQ(hits, chain.nr);
	EXPECT_EQ(variant->threads * variant->stores, hits + filtered);
	for (int i = 0; i < chain.nr; i++) {
		EXPECT_EQ(BOTH, chain.hit[i].flags);
		changes += !is_same(&chain, chain.hit[i].words[0], chain.hit[i].words[1]);
	}
	EXPECT_TRUE(is_same(&chain, self->object, follow(&chain, zeros, &nr)));
	EXPECT_EQ(changes, nr);
	if (self->attr.config & CHANGED)
		EXPECT_EQ(chain.nr, changes);
}

/* ------------------------------------------------------------- changes of the shape */

/* 1, 2, 3 and 4 pieces. All words of an object begin with its tag. */
static const struct shape {
	unsigned int offset, len;
	__u32 tag;
} shapes[] = {
	{ 0, 4, 0xa }, { 16, 12, 0xb }, { 32, 24, 0xc }, { 64, 32, 0xd },
};

#define NR_SHAPES	((int)ARRAY_SIZE(shapes))

static const struct shape *shape_at(__u64 offset)
{
	for (int i = 0; i < NR_SHAPES; i++) {
		if (shapes[i].offset == offset)
			return &shapes[i];
	}
	return NULL;
}

/* At the time of the access, each word of the object has value @v or the one before it. */
static bool is_of_shape(const struct shape *s, const struct hit *hit, __u32 v)
{
	for (unsigned int i = 0; i < s->len / 4; i++) {
		__u32 after = hit->words[1][i];

		if (hit->words[0][i] >> 28 != s->tag || after >> 28 != s->tag ||
		    hit->words[0][i] > after || v - (after & 0x0fffffff) > 1)
			return false;
	}
	return hit->len == s->len && hit->flags == BOTH;
}

static void store_in_shapes(char *mem, __u32 v)
{
	for (int i = 0; i < NR_SHAPES; i++) {
		for (unsigned int at = 0; at < shapes[i].len; at += 4)
			store32(mem + shapes[i].offset + at, shapes[i].tag << 28 | v);
	}
}

FIXTURE(shape)
{
	FIXTURE_DATA(value) v;
};

FIXTURE_VARIANT(shape)
{
	__u64 config;
	bool here;
};

FIXTURE_VARIANT_ADD(shape, guaranteed) { };
FIXTURE_VARIANT_ADD(shape, flexible) { .config = BP_FLEXIBLE };
FIXTURE_VARIANT_ADD(shape, of_a_process) { .config = BP_PROCESS, .here = true };

FIXTURE_SETUP(shape)
{
	if (bp_read_number(BP_PMU "/caps/max_length") < 32)
		SKIP(return, "needs breakpoints of several registers");
	self->v.mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->v.mem);
	self->v.cpus = bp_online_cpus();
	self->v.attr = value_attr(self->v.mem);
	self->v.attr.config |= variant->config;
}

FIXTURE_TEARDOWN(shape)
{
	bp_teardown(_metadata);
}

/* Each shape has had a hit. */
static volatile bool all_seen;

/* Goes on until there were hits of all shapes: the other thread may not run meanwhile. */
static void *change_shape(void *arg)
{
	FIXTURE_DATA(value) *v = arg;
	struct perf_event_attr attr = v->attr;
	__u64 start = bp_now(CLOCK_MONOTONIC);
	long errors = 0;

	bp_pin(v->cpus.cpu[v->cpus.nr - 1]);
	for (int i = 0; i < bp_rounds(400) || (!all_seen && bp_has_patience(start)); i++) {
		/* Each shape after each other one */
		const struct shape *s = &shapes[(i + i / NR_SHAPES * (1 + i % 3)) % NR_SHAPES];

		attr.bp_addr = (unsigned long)v->mem + s->offset;
		attr.bp_len = s->len;
		errors += bp_modify(v->fd, &attr) != 0;
	}
	done = true;
	return (void *)errors;
}

TEST_F(shape, record_is_about_one_object)
{
	FIXTURE_DATA(value) *v = &self->v;
	int seen[NR_SHAPES] = { }, nr_seen = 0;
	const struct shape *s;
	void *errors = NULL;
	pthread_t thread;
	struct hit hit;

	store_in_shapes(v->mem, 0);
	if (variant->here)
		ASSERT_EQ(0, bp_pin(v->cpus.cpu[0]));
	open_ring(_metadata, v, 0, variant->here ? v->cpus.cpu[0] : -1);
	done = false;
	all_seen = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_shape, v));
	for (__u32 i = 1; !done && i < 0x0fffffff; i++) {
		store_in_shapes(v->mem, i);
		while (next_hit(&v->ring, &v->rec, &hit)) {
			s = shape_at(hit.addr - (unsigned long)v->mem);
			ASSERT_TRUE(!!s) {
				TH_LOG("hit at %llx", hit.addr);
			}
			nr_seen += !seen[s - shapes]++;
			EXPECT_TRUE(is_of_shape(s, &hit, i)) {
				TH_LOG("%d bytes, flags %x, of %d bytes: %x -> %x", hit.len,
				       hit.flags, s->len, hit.words[0][0], hit.words[1][0]);
			}
		}
		all_seen = nr_seen == NR_SHAPES;
	}
	pthread_join(thread, &errors);
	EXPECT_EQ(NULL, errors);
	for (int i = 0; i < NR_SHAPES; i++)
		EXPECT_LT(0, seen[i]);
	bp_ring_unmap(&v->ring);
}

/* ------------------------------------------------------------- memory that goes away */

struct page {
	char *mem;
	int fd;
};

static void drop(struct page *p)
{
	madvise(p->mem, BP_PAGE_SIZE, MADV_DONTNEED);
}

static void unmap(struct page *p)
{
	munmap(p->mem, BP_PAGE_SIZE);
	sched_yield();
	mmap(p->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void protect(struct page *p)
{
	mprotect(p->mem, BP_PAGE_SIZE, PROT_NONE);
	sched_yield();
	mprotect(p->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE);
}

static void cut(struct page *p)
{
	if (ftruncate(p->fd, 0))
		_exit(1);
	sched_yield();
	if (ftruncate(p->fd, BP_PAGE_SIZE))
		_exit(1);
}

FIXTURE(page)
{
	FIXTURE_DATA(value) v;
	struct page page;
};

FIXTURE_VARIANT(page)
{
	void (*remove)(struct page *p);
	bool of_a_file;
};

FIXTURE_VARIANT_ADD(page, dropped) { .remove = drop };
FIXTURE_VARIANT_ADD(page, unmapped) { .remove = unmap };
FIXTURE_VARIANT_ADD(page, protected) { .remove = protect };
FIXTURE_VARIANT_ADD(page, truncated) { .remove = cut, .of_a_file = true };
FIXTURE_VARIANT_ADD(page, of_a_file_unmapped) { .remove = unmap, .of_a_file = true };

static void (*remove_page)(struct page *p);

FIXTURE_SETUP(page)
{
	self->v.mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->v.mem);
	self->page = (struct page) { self->v.mem, -1 };
	remove_page = variant->remove;
	if (variant->of_a_file) {
		self->page.fd = memfd_create("value", 0);
		ASSERT_LE(0, self->page.fd);
		ASSERT_EQ(0, ftruncate(self->page.fd, BP_PAGE_SIZE));
		ASSERT_EQ(self->v.mem, mmap(self->v.mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_FIXED, self->page.fd, 0));
	}
	self->v.attr = value_attr(self->v.mem);
	self->v.attr.exclude_kernel = 0;
}

FIXTURE_TEARDOWN(page)
{
	bp_teardown(_metadata);
}

static void *remove_pages(void *page)
{
	while (!done)
		remove_page(page);
	return NULL;
}

/* The page is zero again, or has what was stored. The kernel stores byte by byte. */
static bool is_of_page(__u64 v)
{
	for (; v; v >>= 8) {
		if ((v & 0xff) && (v & 0xff) != 0x55)
			return false;
	}
	return true;
}

struct tally {
	int stored, told;
};

/* The kernel makes the accesses: it gets an error where a program would get a signal. */
static void store_by_kernel(struct __test_metadata *_metadata, FIXTURE_DATA(value) *v,
			    const int *pipefd, struct tally *t)
{
	__u32 bytes = 0x55555555;
	struct hit hit;

	ASSERT_EQ(4, write(pipefd[1], &bytes, 4));
	/* What is not stored is still in the pipe. */
	if (read(pipefd[0], v->mem, 4) == 4)
		t->stored++;
	else
		ASSERT_LT(0, read(pipefd[0], &bytes, 4));
	while (next_hit(&v->ring, &v->rec, &hit)) {
		t->told++;
		EXPECT_TRUE(is_of_page(hit.before));
		EXPECT_TRUE(is_of_page(hit.after));
	}
}

/*
 * The two threads may go in step, so that the page is never there when the kernel stores: at
 * the end, when the page stays, one store has to succeed.
 */
TEST_F(page, may_go_away_at_any_time)
{
	int rounds = bp_rounds(1000), pipefd[2];
	FIXTURE_DATA(value) *v = &self->v;
	struct tally t = {};
	pthread_t thread;

	open_ring(_metadata, v, 0, -1);
	ASSERT_EQ(0, pipe(pipefd));
	done = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, remove_pages, &self->page));
	for (int i = 0; i < rounds; i++)
		store_by_kernel(_metadata, v, pipefd, &t);
	done = true;
	pthread_join(thread, NULL);
	EXPECT_LE(t.stored, t.told);

	t = (struct tally) {};
	store_by_kernel(_metadata, v, pipefd, &t);
	EXPECT_EQ(1, t.stored);
	EXPECT_LE(1, t.told);
	bp_ring_unmap(&v->ring);
}

TEST_HARNESS_MAIN
