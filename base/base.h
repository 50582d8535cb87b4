/* base: what every folder above needs and no folder below provides.
 *
 * Nothing here knows what a plan is.  To add to it: a section titled by its .c file, used by at
 * least two folders; what only one folder needs lives there. */
#ifndef FUSEPLAN_BASE_H
#define FUSEPLAN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* ---- status.c: how a function says that it failed -----------------------------------------------
 *
 * A fallible function returns 0 or -1 and takes `struct status *st` last; `return status_set(...)`
 * is the one idiom.  The first error wins: setting a status that is already set changes nothing, so
 * clean-up code may fail without hiding the cause.  Initialise with STATUS_INIT.  A message is
 * UTF-8 whatever it was made of: see utf8_mend(). */

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
    STATUS_MODEL,       /* the model cannot be trained, loaded or asked */
    STATUS_NOT_FOUND,   /* nothing is known: exit 3 */
    STATUS_INTERRUPTED, /* the user stopped it: exit 130 */
    STATUS_CODE_COUNT
};

struct status {
    enum status_code code;
    char message[1000]; /* lower case, no full stop: what was found, what is expected, what to do */
};

#define STATUS_INIT ((struct status){.code = STATUS_OK})

/* Records the first failure and returns -1, always. */
int status_set(struct status *st, enum status_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts `fmt` and ": " in front of the message of a failure; returns -1. */
int status_prefix(struct status *st, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A stable name, as stored in the database: "ok", "usage", ..., "interrupted". */
const char *status_name(enum status_code code);

/* The code of that name, or STATUS_CODE_COUNT. */
enum status_code status_from_name(const char *name);

/* What a trial of a candidate came to. */
enum trial_status {
    TRIAL_OK,
    TRIAL_CENSORED, /* stopped early: its time is a lower bound */
    TRIAL_FAILED
};

/* "ok", "censored", "failed": as stored, recorded, sent and printed.  An unknown name means
 * TRIAL_FAILED. */
const char *trial_status_name(enum trial_status status);
enum trial_status trial_status_from_name(const char *name);

/* ---- memory.c: allocation -----------------------------------------------------------------------
 *
 * These never return null: running out of memory for program data ends the process with a message.
 * Data whose size the user chose (tensors, masks) is checked against the machine's memory first. */

void *mem_alloc(size_t count, size_t size); /* zeroed; free() it */
void *mem_resize(void *old, size_t count, size_t size);
char *mem_strdup(const char *text);

/* Memory that the machine can still give, in bytes; 0 where the system does not say. */
uint64_t mem_available_bytes(void);

/* ---- buf.c: a growing string --------------------------------------------------------------------
 *
 * ptr is always a valid string (never null) and ptr[len] is NUL; text may hold NUL bytes too. */

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

/* ---- file.c: files and directories ----------------------------------------------------------- */

/* Opens /dev/null in the place of descriptors 0 to 2 that are closed, so that no file, socket or
 * lock takes their numbers; reading and writing there fails as on a closed one.  For main(), before
 * anything is opened.  False where that cannot be done. */
bool file_hold_standard(void);

/* Reads a whole file (at most max_bytes; 0: no limit) and appends it to out. */
int file_read(const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* Writes a file so that readers see the old contents or the new, never a part: a temporary file in
 * the same directory, flushed, then renamed. */
int file_write(const char *path, const void *data, size_t len, struct status *st);

/* Creates a directory and its parents; an existing directory is fine. */
int file_make_dirs(const char *path, struct status *st);

/* Removes a file or a directory with all it holds; a missing one is fine. */
int file_remove_all(const char *path, struct status *st);

bool file_exists(const char *path);

/* The directory of fuseplan's files of one kind, not created.  The first that is set of: `override`
 * (an option's value, may be null), the variable `env`, $`xdg`/fuseplan, $HOME/`home_dir`/fuseplan,
 * the same in the user's home directory.
 * E.g. file_user_dir(opt, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache", ...).  The caller frees. */
char *file_user_dir(const char *override, const char *env, const char *xdg, const char *home_dir);

/* ---- number.c: numbers as text ------------------------------------------------------------------
 *
 * For parsing, the whole text must be a decimal number in [lo, hi]: no sign but '-', no leading
 * zero, no blank. `what` names the thing in the message: "--batch", "value". */

int number_parse(const char *what, const char *text, int64_t lo, int64_t hi, int64_t *out,
                 struct status *st);
int number_parse_double(const char *what, const char *text, double lo, double hi, double *out,
                        struct status *st);

/* "1.5 GiB", into out (at least 32 bytes); returns out. */
char *number_bytes(uint64_t bytes, char out[32]);

/* Appends the shortest decimal text that is read as the same double: "1e-05". */
void number_add(double value, struct buf *out);

/* ---- nearest.c: did you mean? -------------------------------------------------------------------
 *
 * The word of the list with the fewest edits from `word`, the first of equals; null where none is
 * within 1 + length/3 edits. */
const char *nearest_word(const char *word, const char *const *list, int n);

/* ---- random.c: splitmix64, the same on every machine ----------------------------------------- */

/* Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014), the output function at
 * state x. */
uint64_t splitmix64(uint64_t x);

/* A stream: value n of stream `seed` is splitmix64(seed + n * golden gamma). */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n); /* uniform in 0..n-1; n >= 1 */
double rng_unit(struct rng *r);                /* uniform in [0, 1) with 53 bits */

/* ---- hash.c: content addresses --------------------------------------------------------------- */

#define HASH_TEXT_SIZE 33

/* XXH3-128 of the data as 32 lower-case hexadecimal digits and NUL; returns out. */
char *hash_text(const void *data, size_t len, char out[HASH_TEXT_SIZE]);

/* ---- stats.c: order statistics --------------------------------------------------------------- */

struct interval {
    double median, low, high; /* in the samples' unit */
};

/* The median and its 95 % confidence interval from order statistics (binomial, no assumption about
 * the distribution).  Below 6 samples no such interval exists: low and high are the extremes.
 * Does not change samples; n >= 1. */
struct interval stats_median(const double *samples, size_t n);

/* The q quantile (0..1) by linear interpolation between closest ranks. */
double stats_quantile(const double *samples, size_t n, double q);

/* Spearman's rank correlation with mean ranks for ties; 0 where one side is constant. */
double stats_spearman(const double *a, const double *b, size_t n);

/* ---- utf8.c: text that others wrote -------------------------------------------------------------
 *
 * A compiler's words may be in any encoding, and what fills a buffer may be cut within a character;
 * JSON and the database take UTF-8 alone. */

/* Puts a '?' in the place of each byte that is of no character and drops a last one that is cut.
 * Returns text. */
char *utf8_mend(char *text);
bool utf8_is_valid(const char *text);

/* ---- npy.c: NumPy arrays as bytes ------------------------------------------------------------ */

enum npy_type { NPY_BOOL, NPY_UINT8, NPY_FLOAT32 };
const char *npy_type_name(enum npy_type type); /* "bool", "uint8", "float32" */

struct npy {
    enum npy_type type;
    int ndim;
    int64_t shape[4];
    bool fortran_order;
    const void *data; /* borrowed from the bytes parsed */
};

/* Versions 1.0 to 3.0, little endian, at most 4 dimensions, nothing after the data. */
int npy_parse(const void *bytes, size_t len, struct npy *out, struct status *st);

/* Appends header (version 1.0, C order) and data. */
void npy_write(enum npy_type type, int ndim, const int64_t *shape, const void *data,
               struct buf *out);

/* ---- cpu_info.c: the processor --------------------------------------------------------------- */

struct cpu_info {
    char model[128];                 /* "Intel(R) Xeon(R) Processor" */
    char extension[32];              /* its widest vectors: "avx512" */
    char kernel[64];                 /* "Linux 6.1.0" */
    char flags_hash[HASH_TEXT_SIZE]; /* of all that it can do: -march=native depends on it */
};
void cpu_info_read(struct cpu_info *out);

/* Cores that this process may use: affinity and the control group's quota. */
int cpu_threads(void);

/* ---- clock.c: time --------------------------------------------------------------------------- */

double clock_seconds(void); /* monotonic */
#define CLOCK_UTC_SIZE 25
char *clock_utc(char out[CLOCK_UTC_SIZE]); /* "2026-01-31T12:34:56.789Z" */

#endif
