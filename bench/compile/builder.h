/* From choices to binaries: what is known of each, and the compilers at work. */
#pragma once

#include "bench/compile/compile.h"

/* ---- build.c, pool.c ------------------------------------------------------------------------- */

/* What is known of one choice in this session. */
struct binary {
    struct choice choice;
    bool built; /* it was tried: status says with what result */
    struct status status;
    char key[HASH_TEXT_SIZE];          /* in the cache, CACHE_BINARY */
    char content_hash[HASH_TEXT_SIZE]; /* of the binary */
    char *path;                        /* owned */
    double error;                      /* of its verification; negative: not verified yet */
    char verdict[HASH_TEXT_SIZE];      /* in the cache, CACHE_VERDICT; empty until looked for */
    char right[HASH_TEXT_SIZE];        /* what it stores, as a hash: of the verdict, or empty */
    struct resources resources;        /* what the compiler said */
    double build_s; /* that its compiler took: while k ran side by side, 1/k of the time; 0 if the
                       cache had it */
};

/* A running compiler.  Choices that differ only in run-time knobs share a key, and so one build. */
struct build {
    struct compile compile;
    struct binary *binary;
};

/* What failed once is compiled again when all others have ended: then the machine has its memory
 * for it alone, and the first failure may have been the machine's. */
struct failure {
    struct binary *binary;
    bool machine; /* the machine stopped the compiler; else the source may be at fault */
};

/* Binaries that were asked for. */
struct wanted {
    struct binary **binaries; /* owned array */
    int count, begun;         /* of the first `begun`, a compiler runs, ran or is not needed */
    int niceness;             /* of their compilers: the toolchain's when they were asked for */
};

struct builder {
    const struct cache *cache;
    const struct toolchain *toolchain;
    struct build_target target;
    double deadline_s;
    int jobs;
    bool beside; /* compilers may run while the device times */
    const volatile sig_atomic_t *stop;
    void (*compiling)(void *ctx); /* called where compilers run, before one is waited for; may be
                                     null */
    void *compiling_ctx;
    struct listener listener;
    struct binary **binaries; /* owned */
    int count;

    /* pool.c's own: the compilers at work */
    struct buf headers; /* the directory of the kernels' headers; empty until something is built */
    struct build *builds;
    int running;            /* of builds */
    double charged;         /* until when, as clock_seconds(), the running builds were charged */
    struct failure *failed; /* (failed_count) to be compiled again, owned array */
    int failed_count;
    struct wanted ahead; /* of builder_build_some(), which goes on after its return */
    bool busy;           /* a call is under way */
};

void builder_release(struct builder *b);

/* The binary of a choice; a new one, not built, where the choice was not asked for before. */
struct binary *builder_find(struct builder *b, const struct choice *c);

/* Adds what the compiler said to r, which holds what the device said. */
void binary_describe(const struct binary *b, struct resources *r);

/* Checks that the binaries of choices that were built are there; STATUS_ENVIRONMENT where another
 * program removed one. */
int builder_check(struct builder *b, const struct choice *choices, int count, struct status *st);

/* As bench_build().  -1 with STATUS_TIMEOUT if it takes longer than `until`, as clock_seconds(). */
int builder_build(struct builder *b, const struct choice *choices, int count, double until,
                  struct status *results, struct status *st);

/* As bench_build_some(). */
int builder_build_some(struct builder *b, const struct choice *choices, int count, int ahead,
                       double until, struct built *out, struct status *st);

/* Continues what the last builder_build_some() began: takes results and starts compilers, without
 * waiting for any.  Returns whether one still runs. */
bool builder_advance(struct builder *b);

/* ---- what pool.c needs of build.c ------------------------------------------------------------ */

/* Appends the source of a binary, and names the binary by all that it depends on; after the headers
 * have been written, whose directory's name is their hash. */
void binary_source(const struct builder *b, struct binary *binary, struct buf *text);

/* Whether the cache has a binary that has its name, and what the compiler said of it. */
bool binary_in_cache(const struct builder *b, struct binary *binary);

/* A segment that a library runs needs no compiler: its text takes the binary's place. */
int binary_keep_text(const struct builder *b, struct binary *binary, const struct buf *text,
                     struct status *st);

/* STATUS_ENVIRONMENT: another program has removed a binary. */
int builder_gone(const struct builder *b, struct status *st);
