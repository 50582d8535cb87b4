/* cmd: the command line.
 *
 * One file a command, one table of commands (main.c), one of options (option_table.c); --help and
 * shell completion are made from them.  Results go to stdout, everything else to stderr.
 *
 * To add a command: cmd/<name>.c with its `struct command` last, a line in COMMANDS below, cases in
 * tests/cmd/, a section in docs/cli.md.  To add an option: a row in OPTIONS, a field in struct
 * options, a row in option_rows[] (option_table.c). */
#ifndef FUSEPLAN_CMD_H
#define FUSEPLAN_CMD_H

#include "bench/bench.h"
#include "codegen/codegen.h"
#include "db/db.h"
#include "search/search.h"

#include <jansson.h>
#include <stdio.h>

/* ---- options.c: the command line ------------------------------------------------------------- */

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(BATCH) X(SEQ_LEN) X(MASK) X(HEADS) X(HEAD_SIZE) X(LAYERS) X(FFN) X(EPS) X(DTYPE)             \
    X(LENGTHS) X(AVG_SEQ_LEN) X(TARGET) X(INIT) X(SEGMENTS) X(HANDWRITTEN) X(NPY) X(SVG)           \
    X(OUTPUT) X(NO_BASELINE) X(TRACE) X(DUMP) X(FAIL_ABOVE) X(SPACE) X(BUDGET) X(TIME_LIMIT)       \
    X(RIGOR) X(STRATEGY) X(DATA) X(NAME) X(QUANTILE) X(FEATURES) X(SEED) X(COMPILER) X(ARCH)       \
    X(JOBS) X(DB) X(FORMAT) X(QUIET) X(VERBOSE) X(HELP)
/* clang-format on */

enum option_id {
#define X(id) OPTION_##id,
    OPTIONS(X)
#undef X
        OPTION_COUNT
};

#define OPT(id)     (UINT64_C(1) << OPTION_##id)

#define OPTS_COMMON (OPT(FORMAT) | OPT(QUIET) | OPT(VERBOSE) | OPT(HELP))
#define OPTS_WORKLOAD                                                                              \
    (OPT(BATCH) | OPT(SEQ_LEN) | OPT(MASK) | OPT(HEADS) | OPT(HEAD_SIZE) | OPT(LAYERS) |           \
     OPT(FFN) | OPT(EPS) | OPT(DTYPE) | OPT(LENGTHS) | OPT(AVG_SEQ_LEN) | OPT(TARGET) | OPT(SEED))

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_NDJSON, FORMAT_CSV };

/* What a command line says; texts are borrowed from it. */
struct options {
    uint64_t given; /* OPT() bits */
    int batch, seq_len, heads, head_size, layers, ffn, avg_seq_len;
    double eps;
    const char *mask, *dtype, *lengths, *target;
    enum ranges ranges; /* --init */
    const char *segments, *npy, *svg, *output, *trace, *dump, *space, *strategy, *data, *name,
        *compiler, *arch, *db;
    double fail_above, time_limit_s, quantile;
    enum feature_set features;
    enum rigor rigor;
    int budget, jobs;
    uint64_t seed;
    enum format format;
    const char **operands; /* owned */
    int operand_count;
};

struct command;

/* Parses argv[1..], argv[0] being the command's name. */
int options_parse(struct options *o, const struct command *c, int argc, char **argv,
                  struct status *st);
void options_release(struct options *o);

static inline bool options_has(const struct options *o, uint64_t bit)
{
    return (o->given & bit) != 0;
}

/* ---- option_table.c: every option of every command ------------------------------------------- */

/* What --help and completion need to know of an option. */
struct option_info {
    const char *name;
    char letter;                      /* 0: none */
    const char *argument;             /* "N"; null where it takes none */
    const char *help;                 /* one line */
    void (*words)(struct buf *words); /* adds what may follow it, blanks between; may be null */
};
const struct option_info *option_info(enum option_id id);

/* ---- option_words.c -------------------------------------------------------------------------- */

void words_mask(struct buf *words); /* names of masks, blanks between */

/* ---- main.c: the commands -------------------------------------------------------------------- */

enum { EXIT_USAGE = 2, EXIT_NO_RESULT = 3, EXIT_REGRESSION = 4, EXIT_INTERRUPTED = 130 };

struct command {
    const char *name, *operands, *summary;
    uint64_t options;
    const char *about;                /* a paragraph for --help; may be null */
    void (*more)(struct buf *out);    /* lines made from tables; may be null */
    const char *examples;             /* one a line */
    void (*words)(struct buf *words); /* adds operands for completion, as above; may be null */
    int (*run)(const struct options *o, struct status *st); /* an exit status, or -1 */
};

#define COMMANDS(X)                                                                                \
    X(translate)                                                                                   \
    X(mask)                                                                                        \
    X(generate)                                                                                    \
    X(bench)                                                                                       \
    X(search)                                                                                      \
    X(query)                                                                                       \
    X(train)                                                                                       \
    X(predict)                                                                                     \
    X(db)                                                                                          \
    X(doctor)                                                                                      \
    X(completion)

#define X(name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

extern const struct command *const commands[];
extern const int command_count;

/* ---- help.c ---------------------------------------------------------------------------------- */

void help_program(FILE *out);
void help_command(const struct command *c, FILE *out);

/* ---- output.c: rows as a table, JSON, NDJSON or CSV ---------------------------------------------
 *
 * A row is a JSON object.  JSON and NDJSON print all of it; tables and CSV the listed columns. */

struct column {
    const char *key;   /* in the row, and in CSV's first line */
    const char *title; /* in tables; null: not shown there */
    int decimals;      /* of reals, in tables */
};

struct output {
    enum format format;
    const struct column *columns;
    int column_count, rows;
    json_t *kept;    /* tables: the rows, until all widths are known */
    bool skip_empty; /* leave out of a table the columns that no row fills; false to begin with */
};

void output_begin(struct output *out, enum format format, const struct column *columns, int count);
void output_row(struct output *out, json_t *row); /* takes the row over */
void output_end(struct output *out);

/* One object alone: indented JSON, or one line of NDJSON.  Takes it over. */
void output_object(enum format format, json_t *object);

/* A number, or null where it is not finite. */
json_t *json_number(double value);

/* What happens, for people: to stderr, not with --quiet. */
void note(const struct options *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- workload.c: from options to a workload, and what is known of it ------------------------- */

/* The target and the workload of the options, checked; the mask is built where `build` or its key
 * needs it.  Release *w in any case. */
int workload_from_options(const struct options *o, bool build, struct target_name *target,
                          struct workload *w, struct status *st);

/* Its two steps: all but the mask's bits, then these. */
int workload_read(const struct options *o, struct target_name *target, struct workload *w,
                  struct status *st);
int workload_read_mask(const struct options *o, struct workload *w, struct status *st);

/* Whether a model is asked for by its workload, any option of which is given, rather than by
 * --name. */
int model_of_workload(const struct options *o, bool *out, struct status *st);

/* What --arch says; empty where it is not given. */
int archs_from_options(const struct options *o, enum target_kind target, struct arch_list *out,
                       struct status *st);

/* Its study, or that most like it; STATUS_NOT_FOUND where the database holds none. */
int study_of_workload(const struct options *o, struct db *db, struct target_name target,
                      const struct workload *w, int64_t *study, struct status *st);

/* ---- output_places.c: where a command is to write -----------------------------------------------
 */

/* Whether a file could be created or replaced, said before anything is measured. what: "--trace".
 */
int file_is_writable(const char *what, const char *path, struct status *st);

/* Whether a directory is missing or empty, so that something may be written there. */
int directory_is_vacant(const char *dir, bool *out, struct status *st);

/* ---- session.c: what a command that measures holds open -------------------------------------- */

struct session {
    struct target_name target;
    struct workload workload;
    struct bench *bench;
    struct db *db;
    int64_t study; /* 0 until its user opens it */
};

/* Opens all but the study; seed draws inputs and weights.  From here on an interrupt sets
 * session_stop; a second one ends the program.  Close it in any case. */
int session_open(const struct options *o, uint64_t seed, struct session *out, struct status *st);
void session_close(struct session *s);

/* What makes the times measured so far doubtful: others on the GPU, and its own slowdowns. */
void session_note_disturbance(const struct options *o, const struct session *s);
extern volatile sig_atomic_t session_stop;

/* ---- report.c: the best plan, explained ------------------------------------------------------ */

json_t *workload_json(const struct workload *w, enum target_kind target);

/* As JSON, as CSV or for people.  relaxed: names of what differs from what was asked for, a JSON
 * array, taken over. */
void report_print(const struct options *o, const struct workload *w, enum target_kind target,
                  const struct tune_report *r, json_t *relaxed);

/* ---- kernels.c: the segments of plans, each alone -------------------------------------------- */

struct kernel {
    struct choice choice;
    struct trial trial;
};

/* All zero: empty. */
struct kernels {
    const struct workload *workload; /* borrowed from the session */
    struct limits limits;
    struct kernel *items; /* each choice once, owned */
    int count;
};

/* Adds those of a plan that are not among them yet, and stores what was measured under a search. */
int kernels_measure(struct session *s, const struct candidate *c, const char *search,
                    struct kernels *out, struct status *st);
void kernels_release(struct kernels *k);

/* Those that failed, with why, to stderr. */
void kernels_complain(const struct kernels *k);

/* Those of a plan that was measured, in order, with what they take of the device and what they make
 * of it. */
json_t *kernels_json(const struct kernels *k, const struct candidate *c);

/* The same for people, plan after plan, each with a sum. */
void kernels_print(const struct kernels *k, const struct candidate *const *plans, int n);

/* ---- trace.c: when each launch of plans runs ----------------------------------------------------
 */

/* Runs plans launch by launch and writes Chrome trace events, one process a plan. */
int trace_write(struct session *s, const struct candidate *const *plans, int n, const char *path,
                struct status *st);

/* ---- plan_text.c: plans as text and JSON ----------------------------------------------------- */

/* "0-1 2-6": the segments of two operators or more; empty where there are none. */
void plan_fused_text(struct plan p, struct buf *out);

/* "10-11", "7": a segment in operator numbers. */
char *segment_text(struct segment s, char out[12]);

/* [[0, 0], [1, 1], ...]: all segments in operator numbers. */
json_t *plan_segments_json(struct plan p);

/* ---- picture.c: a mask to look at ------------------------------------------------------------ */

/* Cells of rows and columns: '#' where all is kept, '+' some, '.' nothing. */
void picture_text(const struct workload *w, struct buf *out);

/* The same as SVG, with more cells, darker the more is kept. */
void picture_svg(const struct workload *w, struct buf *out);

/* Whether row i of a batch row sees key j, padding and masked keys past a length left out. */
bool picture_keep(const struct workload *w, int batch_row, int i, int j);

#endif
