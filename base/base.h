/* base: what the C library does not provide: files, processes, text, numbers, statistics.
 *
 * Nothing here knows what a plan is.  To add something: a section titled by its .c file. */
#ifndef FUSEPLAN_BASE_H
#define FUSEPLAN_BASE_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

#define STATUS_INIT ((struct status){.code = STATUS_OK})

/* Records the failure if it is the first; returns -1. */
int status_set(struct status *st, enum status_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts `fmt` and ": " in front of the message of a failure; returns -1. */
int status_prefix(struct status *st, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A stable name, as stored in the database: "ok", "usage", ..., "interrupted". */
const char *status_name(enum status_code code);

/* STATUS_CODE_COUNT for an unknown name. */
enum status_code status_from_name(const char *name);

/* How a trial ended: the attempt to compile, verify and time one candidate.  It stands here because
 * bench, which runs trials, and db, which stores them, do not include each other. */
enum trial_status {
    TRIAL_OK,
    TRIAL_CENSORED, /* timing stopped early: the time is a lower bound */
    TRIAL_FAILED    /* a struct status beside it says why */
};

/* "ok", "censored", "failed".  An unknown name means TRIAL_FAILED. */
const char *trial_status_name(enum trial_status status);
enum trial_status trial_status_from_name(const char *name);

/* ---- memory.c: allocation -----------------------------------------------------------------------
 *
 * These never return null for a size above 0: if memory runs out, the process ends with a message.
 * Where the user chose the size (tensors, masks), the caller compares it with the machine's memory
 * first. */

void *mem_alloc(size_t count, size_t size); /* zeroed; free() it */
void *mem_unset(size_t size); /* not zeroed; a malloc() for libraries that cannot do without */
void *mem_resize(void *old, size_t count, size_t size);
char *mem_strdup(const char *text);
void *mem_checked(void *taken); /* for functions of the C library that allocate: returns what they
                                   returned, unless that is null */

/* ---- buf.c: a growing string --------------------------------------------------------------------
 *
 * ptr is never null and ptr[len] is NUL.  The text itself may hold NUL bytes. */

struct buf {
    char *ptr;
    size_t len, cap;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b); /* frees the contents; init before using it again */
void buf_reset(struct buf *b);   /* empties it, keeps the memory */
char *buf_detach(struct buf *b); /* the caller frees the text; b is as after init */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *text);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_addv(struct buf *b, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Appends a word as a shell reads it, for commands that users may copy: "'a b'".  As a path it
 * begins with "./" in place of a dash, so that no program takes it for an option. */
void buf_add_word(struct buf *b, const char *word);
void buf_add_path(struct buf *b, const char *path);

/* ---- file.c: files and directories ----------------------------------------------------------- */

/* Opens /dev/null as each of the descriptors 0 to 2 that is closed, so that no file, socket or lock
 * gets its number.  Reading from 0 and writing to 1 or 2 still fails.  main() calls it before it
 * opens anything.  False on failure. */
bool file_hold_standard(void);

/* Opens a regular file to read it.  Anything else might block or never end:
 * STATUS_ENVIRONMENT, -1. */
int file_open(const char *path, struct status *st);

/* Appends a whole regular file to out.  Fails if it has more than max_bytes; 0: FILE_MAX_BYTES. */
#define FILE_MAX_BYTES ((size_t)256 << 20)
int file_read(const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* Creates a directory and its parents; an existing directory is fine. */
int file_make_dirs(const char *path, struct status *st);

/* Removes a file or a directory with all it holds; a missing one is fine. */
int file_remove_all(const char *path, struct status *st);

bool file_exists(const char *path);

/* ---- file_kind.c: what a file is ------------------------------------------------------------- */

enum file_kind { FILE_OTHER, FILE_DATABASE, FILE_GZIP, FILE_SPACE, FILE_RESULTS, FILE_UTF16 };

/* By the first line of a file; *what: the kind and the command that takes it, or null. */
enum file_kind file_kind(const char *bytes, size_t len, const char **what);

/* As file_read(), of text: a byte order mark is left out, and UTF-16 is refused. */
int file_read_text(const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* Bytes of the byte order mark that a text in UTF-8 begins with: 3, or 0 if there is none. */
size_t utf8_mark(const char *bytes, size_t len);

/* The directory of fuseplan's files of one kind; it may not exist.  The first that is set of:
 * `override` (an option's value, may be null), $`env`, $`xdg`/fuseplan, HOME/`home_dir`/fuseplan,
 * e.g. file_user_dir(opt, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache").  HOME is $HOME or else
 * what the system's list of users says.  The caller frees. */
char *file_user_dir(const char *override, const char *env, const char *xdg, const char *home_dir);

/* ---- write.c: the one way to write a file -------------------------------------------------------
 *
 * A new file, and one that replaces a regular file, is written under a temporary name and renamed,
 * so that readers see either the old contents or the new.  It keeps the old file's owner and mode.
 * Written in place is what a rename would destroy: a device, a FIFO, a file of several names, a
 * file whose directory refuses a new one, and what standard output or standard error is open on.
 * Symbolic links are followed, also to a file that does not exist yet. */

/* "-" and "/dev/stdout" name standard output. */
int file_write(const char *path, const void *data, size_t len, struct status *st);
bool file_is_standard_output(const char *path);

/* Keeps standard output for one file: what the program prints from now on goes to standard error.
 * STATUS_USAGE if another file has it already. */
int file_reserve_standard_output(struct status *st);

/* Whether file_write() can be seen to fail without trying: the errno that it would have, else 0. */
int file_write_error(const char *path);

/* The name behind symbolic links; nothing needs to have it.  Null with errno set where the links
 * are a circle.  The caller frees. */
char *file_follow(const char *path);

/* Blocks the signals that end the program: for the time in which there is a temporary file, which
 * they would leave behind.  *before: the signal mask until now, which the caller restores. */
void file_hold_signals(sigset_t *before);

/* ---- directory.c: directories written as a whole -----------------------------------------------
 *
 * What is to be in a directory is first written to a staging directory.  A commit renames that one
 * if the directory does not exist.  Else it moves the entries into the directory, which may be
 * somebody's working directory or a mount point and stays the one that it is. */

struct fresh_dir {
    char *dir;   /* the absolute path of the directory, owned */
    char *at;    /* the staging directory, owned; null: it was committed */
    bool exists; /* whether the directory did */
};

/* Makes the staging directory, and all directories above `dir`.  Follows a link in its place, also
 * to a directory that does not exist.  Release *out only after success. */
int fresh_dir_open(const char *dir, struct fresh_dir *out, struct status *st);

/* Fails and changes nothing if the directory holds anything, or with `replace` set, if it holds
 * directories of the same names. */
int fresh_dir_commit(struct fresh_dir *s, bool replace, struct status *st);
void fresh_dir_release(struct fresh_dir *s); /* removes what was not committed */

/* A list of names; all zero: empty. */
struct names {
    char **items; /* owned */
    int count;
};
void names_add(struct names *n, const char *name);
bool names_have(const struct names *n, const char *name);
void names_text(const struct names *n, struct buf *out); /* "'a', 'b'"; many: "... and 9 more" */
void names_release(struct names *n);

/* All entries but . and .., sorted; of a directory that does not exist none. */
int directory_list(const char *dir, struct names *out, struct status *st);

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

/* ---- trust.c: who else could have written what is run ---------------------------------------- */

enum trust {
    TRUST_DIR,  /* nobody but us and root owns the directory or may write to it */
    TRUST_MADE, /* the same, and what is missing is made, for us alone */
    TRUST_WAY   /* the directory may be anybody's, as one that users share; the way there is safe */
};

/* Follows a path to a directory, component by component.  Each directory on the way belongs to us
 * or root, and others may not write to it; it may be sticky instead, as /tmp is, if what comes next
 * is ours or root's.  Each link belongs to us or root.  So no other user can make the path lead
 * elsewhere later.  Returns the absolute path without links, which the caller uses from then on and
 * frees.  Null with STATUS_ENVIRONMENT otherwise. */
char *file_trust(const char *path, enum trust how, struct status *st);

/* Whether a regular file is ours or root's and only its owner may write to it. */
bool file_is_ours(const char *path);

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
 * has a tenth of them and 3 at least, and the medians differ by a twentieth.  Of fewer than 10
 * samples nobody can say. */
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

/* ---- both.c: two functions at once ----------------------------------------------------------- */

/* Returns 0, or -1 with the reason in *st. */
typedef int both_work(void *ctx, struct status *st);

/* Runs two functions on the same ctx, of which neither may read what the other one writes.  The
 * second one has a thread of its own; where none can be started, it runs after the first one.  -1
 * if one failed, or both: *st is the first one's reason if it failed, else the second one's. */
int run_both(both_work *first, both_work *second, void *ctx, struct status *st);

#include "base/child.h"
#include "base/cpu_info.h"
#include "base/npy.h"
#include "base/progress.h"
#include "base/sandbox.h"

#endif
