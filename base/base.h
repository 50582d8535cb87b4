/* base: what the C library does not provide: files, processes, text, numbers, statistics.
 *
 * Nothing here knows what a plan is.  To add something: a section titled by its .c file. */
#pragma once

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* ---- status.c: how a function says that it failed -----------------------------------------------
 *
 * A fallible function returns 0 or -1 and takes `struct status *st` last; it fails with `return
 * status_set(...)`.  The first error wins: setting a status a second time changes nothing, so
 * clean-up code may fail without hiding the cause.  Initialise with STATUS_INIT.  Messages are one
 * line: they are passed through utf8_escape(). */

enum status_code {
    STATUS_OK = 0,
    STATUS_USAGE,       /* the user's input is wrong: exit 2 */
    STATUS_ENVIRONMENT, /* a tool, file, device or right is missing: exit 1, ends a search */
    STATUS_UNFIT,       /* the candidate cannot serve this workload */
    STATUS_COMPILE,     /* the compiler rejected the candidate */
    STATUS_LAUNCH,      /* the candidate crashed or could not be launched */
    STATUS_WRONG,       /* the candidate's result differs from the oracle's */
    STATUS_TIMEOUT,     /* the candidate was stopped at its deadline */
    STATUS_DATABASE,    /* the database cannot be read or written: ends a search */
    STATUS_MODEL,       /* the model cannot be trained, loaded or evaluated */
    STATUS_NOT_FOUND,   /* what was asked for is not stored or does not exist: exit 3 */
    STATUS_INTERRUPTED, /* the user stopped it: exit 130 */
    STATUS_CODE_COUNT
};

struct status {
    enum status_code code;
    char message[1000]; /* lower case, no full stop: what was found, what is expected, what to do */
};

#define STATUS_INIT    ((struct status){.code = STATUS_OK})
#define STATUS_IGNORED (&STATUS_INIT) /* of a call whose failure means nothing */

/* Records the failure if it is the first; returns -1. */
int status_set(struct status *st, enum status_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts `fmt` and ": " in front of the message of a failure; returns -1. */
int status_prefix(struct status *st, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Passes on how a call failed and returns -1; 0 where it did not, or found nothing
 * (STATUS_NOT_FOUND). */
int status_unless_missing(const struct status *failed, struct status *st);

/* A stable name, as stored in the database: "ok", "usage", ..., "interrupted". */
const char *status_name(enum status_code code);

/* STATUS_CODE_COUNT for an unknown name. */
enum status_code status_from_name(const char *name);

/* ---- memory.c: allocation -----------------------------------------------------------------------
 *
 * These never return null for a size above 0: if memory runs out, the process ends with a message.
 * Where the user chose the size (tensors, masks), the caller compares it with the machine's memory
 * first. */

void *mem_alloc(size_t count, size_t size); /* zeroed; free() it */
void *mem_unset(size_t size); /* not zeroed; a malloc() for libraries that cannot do without */
void *mem_resize(void *old, size_t count, size_t size);
void *mem_room(void *old, size_t count, size_t size); /* for one more than count items, all of which
                                                         got their room here: it doubles */
char *mem_strdup(const char *text);
void *mem_checked(void *taken); /* for functions of the C library that allocate: returns what they
                                   returned, unless that is null */

/* A local pointer whose memory is freed where its scope ends: SCOPED char *copy = mem_strdup(text);
 * It is the only variable of its declaration. */
#define SCOPED __attribute__((cleanup(mem_free_scoped)))
void mem_free_scoped(void *pointer);

/* The same of a local struct, by the function that releases what it owns: SCOPED_BY(names_release)
 * struct names all = {.count = 0};  A struct without a value must get one before the first return.
 * Of a pointer to a struct, such as struct db, the function is db_close_at(), which SCOPED_CLOSE
 * makes of db_close(). */
#define SCOPED_BY(release) __attribute__((cleanup(release)))
#define SCOPED_CLOSE(type, close)                                                                  \
    static inline void close##_at(struct type **pointer)                                           \
    {                                                                                              \
        close(*pointer);                                                                           \
    }

/* ---- buf.c: a growing string --------------------------------------------------------------------
 *
 * ptr is never null and ptr[len] is NUL.  The text itself may hold NUL bytes. */

struct buf {
    char *ptr;
    size_t len, cap;
};

extern char buf_empty[1]; /* the text of every empty buf; never written, as cap is 0 then */
#define BUF_INIT ((struct buf){.ptr = buf_empty})

/* A local buf that is released where its scope ends: SCOPED_BUF text = BUF_INIT; */
#define SCOPED_BUF SCOPED_BY(buf_release) struct buf

void buf_init(struct buf *b);
void buf_release(struct buf *b); /* frees the contents; init before using it again */
void buf_reset(struct buf *b);   /* empties it, keeps the memory */
char *buf_detach(struct buf *b); /* the caller frees the text; b is as after init */

/* A text as printf() writes it, which the caller frees. */
char *buf_text(const char *fmt, ...) PRINTF_LIKE(1, 2);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *text);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_addv(struct buf *b, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Appends a word as a shell reads it, for commands that users may copy: "'a b'".  As a path it
 * begins with "./" in place of a dash, so that no program takes it for an option. */
void buf_add_word(struct buf *b, const char *word);
void buf_add_path(struct buf *b, const char *path);

/* ---- number.c: numbers as text ------------------------------------------------------------------
 *
 * The parsers take a whole text that is a decimal number in [lo, hi]: no sign but '-', no blank,
 * and for integers no leading zero.  `what` names the number in messages: "--batch", "value". */

int number_parse(const char *what, const char *text, int64_t lo, int64_t hi, int64_t *out,
                 struct status *st);
int number_parse_double(const char *what, const char *text, double lo, double hi, double *out,
                        struct status *st);

/* "1.5 GiB"; returns out. */
char *number_bytes(uint64_t bytes, char out[32]);

/* Appends the shortest decimal text that reads back as the same double: "1e-05". */
void number_add(double value, struct buf *out);

/* ---- nearest.c: did you mean? ---------------------------------------------------------------- */

/* The word of the list that is the fewest edits away from `word`, the first such; null if all are
 * more than 1 + length/3 edits away.  An edit inserts, deletes or replaces a character or swaps two
 * neighbours. */
const char *nearest_word(const char *word, const char *const *list, int n);

/* ---- random.c: splitmix64, the same on every machine ----------------------------------------- */

/* The output at state x of the generator in Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators (2014). */
uint64_t splitmix64(uint64_t x);

/* A stream of numbers.  state starts as the seed;
 * value n is splitmix64(seed + n * golden gamma). */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n); /* uniform in 0..n-1; n >= 1 */
double rng_unit(struct rng *r);                /* uniform in [0, 1) with 53 bits */
double rng_normal(struct rng *r);              /* of mean 0 and variance 1, by Box and Muller */

/* For names: a number of the system's, or where it has none, of the process and the time. */
uint64_t random_for_name(void);

/* ---- hash.c: content addresses --------------------------------------------------------------- */

#define HASH_TEXT_SIZE 33

/* XXH3-128 of the data as 32 lower-case hexadecimal digits and NUL; returns out. */
char *hash_text(const void *data, size_t len, char out[HASH_TEXT_SIZE]);

/* XXH3-64 of the data with a seed. */
uint64_t hash_number(const void *data, size_t len, uint64_t seed);

/* ---- stats.c: order statistics --------------------------------------------------------------- */

struct interval {
    double median, low, high; /* in the samples' unit */
};
#define NO_INTERVAL ((struct interval){NAN, NAN, NAN}) /* nothing is known */

struct interval interval_times(double factor, struct interval i);

/* The median and its 95 % confidence interval from order statistics (binomial, no assumption about
 * the distribution).  Below 6 samples no such interval exists: low and high are the extremes.
 * n >= 1.  The second one is of the ratios a[i] / b[i]. */
struct interval stats_median(const double *samples, size_t n);
struct interval stats_median_ratio(const double *a, const double *b, size_t n);

/* Samples that fall into two groups have no median that says much. */
struct groups {
    double low, high;  /* the medians of the two */
    double high_share; /* of the samples */
};

/* Whether n samples fall into two groups: a cut explains nine tenths of their variance, each side
 * has a tenth of the samples and 3 at least, and the medians differ by a twentieth.  Of fewer than
 * 10 samples nobody can say. */
bool stats_two_groups(const double *samples, size_t n, struct groups *out);

/* For qsort() of doubles, none of them NaN, the least first. */
int stats_order(const void *a, const void *b);

/* The q quantile (0..1) by linear interpolation between closest ranks; n >= 1. */
double stats_quantile(const double *samples, size_t n, double q);

/* Spearman's rank correlation with mean ranks for ties; 0 if either side is constant. */
double stats_spearman(const double *a, const double *b, size_t n);

/* ---- utf8.c: text that others wrote -------------------------------------------------------------
 *
 * JSON and the database take UTF-8 alone.  A compiler's output may have any encoding, and text that
 * fills a buffer may end within a character. */

/* Replaces bytes of no character by '?' and drops a last character that is cut; returns text. */
char *utf8_mend(char *text);
bool utf8_is_valid(const char *text);

/* The bytes of the character that the text begins with, if it is a control character or one that
 * shows nothing or changes how others are shown, as U+202E, which reverses them; *number is its
 * code point.  Else 0. */
int utf8_hidden(const char *text, uint32_t *number);

/* Appends the text for a terminal: each byte of such a character, and each byte that belongs to no
 * character, as "\n", "\t", "\r" or "\x1b".  Text that was escaped before stays as it is. */
void utf8_escape(const char *text, struct buf *out);

/* Whether the text has nothing to escape. */
bool utf8_is_plain(const char *text);

/* ---- clock.c: time --------------------------------------------------------------------------- */

double clock_seconds(void);                  /* monotonic */
struct timespec clock_after(double seconds); /* from now, for waits by CLOCK_MONOTONIC */
#define CLOCK_UTC_SIZE 25
char *clock_utc(char out[CLOCK_UTC_SIZE]); /* "2026-01-31T12:34:56.789Z" */

/* How long a process has waited for another one, which it looks at ten times a second or more
 * often. While it is suspended, or gets no processor, the other one may not run either.  So what
 * passes between two looks counts as PATIENCE_STEP_S at most. */
#define PATIENCE_STEP_S 0.2
struct patience {
    double looked_s, spent_s;
};

void patience_begin(struct patience *p, double now);

/* Looks: adds the time since the last look, and returns the sum. */
double patience_spent(struct patience *p, double now);

#include "base/child.h"
#include "base/conf.h"
#include "base/cpu_info.h"
#include "base/files.h"
#include "base/npy.h"
#include "base/progress.h"
#include "base/sandbox.h"
