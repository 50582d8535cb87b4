/* cmd: the command line.
 *
 * Each command has a file.  --help and shell completion are made from the table of commands
 * (main.c) and the table of options (option_table.c).  Results go to stdout, everything else to
 * stderr.  CONTRIBUTING.md has the steps to add a command or an option. */
#pragma once

#include "bench/bench.h"
#include "codegen/codegen.h"
#include "db/db.h"
#include "search/search.h"

#include <jansson.h>

/* ---- options.c: the command line ------------------------------------------------------------- */

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(BATCH) X(SEQ_LEN) X(MASK) X(PRESET) X(MODEL) X(HEADS) X(HEAD_SIZE) X(HIDDEN) X(LAYERS) X(FFN) X(EPS)  \
    X(NORM) X(NORM_KIND) X(ACTIVATION) X(GATE) X(ROPE) X(SCORE_BIAS) X(LOCAL_MASK) X(LOCAL_ROPE) X(GLOBAL_EVERY) X(DTYPE)  \
    X(LENGTHS) X(AVG_SEQ_LEN) X(TARGET) X(INIT) X(WEIGHTS) X(PREFIX) X(INPUT) X(CALIBRATION) X(PRECISION) X(ERROR) X(ACCURACY) X(PACKED) X(PADDED) X(SEGMENTS)         \
    X(HANDWRITTEN) X(NPY) X(SVG) X(OUTPUT) X(FORCE) X(BUILD) X(BASELINE) X(DUMP) X(STAMPS) \
    X(FAIL_ABOVE) X(OP) X(SPACE) X(BUDGET) X(TIME_LIMIT) X(TOTAL_TIME) X(AGAIN) X(RETRY_FAILED)         \
    X(RIGOR) X(STRATEGY) X(DATA) X(NAME) X(QUANTILE) X(SEED) X(SEEDS) X(NOISE)         \
    X(NO_SEGMENT_TIMES) X(COMPILER) X(ARCH) X(JOBS) X(SHARD) X(SHARDS) X(SAVE) X(DB) X(EVENTS) X(FORMAT) X(TOP)               \
    X(FAILED) X(OLDER_PROTOCOL) X(DRY_RUN) X(PACK) X(QUIET) X(VERBOSE) X(HELP)
/* clang-format on */

enum option_id {
#define X(id) OPTION_##id,
    OPTIONS(X)
#undef X
        OPTION_COUNT
};

__extension__ typedef unsigned __int128 option_bits; /* bits */
#define OPT(id)     ((option_bits)1 << OPTION_##id)

#define OPTS_COMMON (OPT(FORMAT) | OPT(QUIET) | OPT(VERBOSE) | OPT(HELP))
#define OPTS_WORKLOAD                                                                              \
    (OPT(BATCH) | OPT(SEQ_LEN) | OPT(MASK) | OPT(PRESET) | OPT(MODEL) | OPT(HEADS) |               \
     OPT(HEAD_SIZE) | OPT(HIDDEN) | OPT(LAYERS) | OPT(FFN) | OPT(EPS) | OPT(NORM) |                \
     OPT(NORM_KIND) | OPT(ACTIVATION) | OPT(GATE) | OPT(ROPE) | OPT(SCORE_BIAS) |                  \
     OPT(LOCAL_MASK) | OPT(LOCAL_ROPE) | OPT(GLOBAL_EVERY) | OPT(DTYPE) | OPT(LENGTHS) |           \
     OPT(AVG_SEQ_LEN) | OPT(TARGET) | OPT(SEED))
#define OPTS_SEARCHED (OPTS_WORKLOAD | OPT(INIT) | OPT(DB))
#define OPTS_PLANS    (OPTS_SEARCHED | OPT(PRECISION)) /* and which plans of the workload */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_NDJSON, FORMAT_CSV, FORMAT_MARKDOWN };

#define BASELINE_DEFAULT "43690,41115" /* the unfused plan; a common fusion */

struct numbers {
    int count, items[64]; /* distinct */
};

/* A parsed command line.  Texts are borrowed from argv and settings; null where the option is not
 * given and has no default. */
struct options {
    option_bits given;               /* OPT() bits of the options given, also by files */
    option_bits from_files;          /* those of them that the command line does not give */
    struct settings *settings;       /* what files set, owned; null: none were read */
    const char *texts[OPTION_COUNT]; /* their arguments; null where there is none */
    int batch, seq_len;              /* the first number of each list */
    struct numbers batches, seq_lens;
    int heads, head_size, hidden, layers, ffn, avg_seq_len;
    double eps, rope, rope_factor; /* of rotary embeddings the base, 0: none, and the factor */
    double local_rope;             /* 0: rope */
    int global_every;
    const char *local_mask;          /* null or "none": layers are of one kind */
    int local_width;                 /* of a model: sliding:w in its place; -1: of one kind */
    int norm, norm_kind, activation; /* indices of words */
    bool gate, score_bias;
    const char *mask, *model, *lengths, *target, *segments, *npy, *svg, *output, *baseline, *dump,
        *weights, *prefix, *input, *calibration, *accuracy, *data, *name, *compiler, *arch, *save,
        *db, *events;
    char *model_weights; /* of --model's directory, owned: --weights, where that is not given */
    unsigned precision;  /* GEMMs in e4m3, as bits */
    enum dtype dtype;    /* only if given: the default depends on the target */
    enum ranges ranges;  /* --init */
    struct numbers strategies; /* indices into strategies[] */
    int preset;                /* index into the presets */
    int op;                    /* index into the operations of --op, of which there is one */
    double error, fail_above, time_limit_s, total_time_s, quantile;
    enum rigor rigor;
    int budget, jobs, top, seeds;
    int shard, shards; /* 0..shards-1 */
    double noise[2];   /* of segments, of plans */
    unsigned space[2]; /* lowest and highest value */
    uint64_t seed;
    enum format format;
    const char **operands; /* owned */
    int operand_count;
};

struct command;

/* Parses argv[1..]; argv[0] is the command's name.  files: adds what settings files say, unless it
 * is
 * --help.  Release *o on failure too. */
int options_parse(struct options *o, const struct command *c, int argc, char **argv, bool files,
                  struct status *st);
void options_release(struct options *o);

/* In options_text.c: append " -b 1 -m causal": of a set of options those given, as given; and
 * "fuseplan search -b 1 -m causal", with the program as it was called. */
void options_words(const struct options *o, option_bits set, struct buf *out);
void options_command(const struct options *o, const char *command, option_bits set,
                     struct buf *out);

static inline bool options_has(const struct options *o, option_bits bit)
{
    return (o->given & bit) != 0;
}

/* ---- option_table.c: every option of every command ------------------------------------------- */

/* What --help and completion print of an option. */
struct option_info {
    const char *name;
    char letter;                      /* 0: none */
    const char *argument;             /* "N"; "[=none]": it may take one; null: it takes none */
    const char *help;                 /* one line */
    void (*words)(struct buf *words); /* appends the arguments that it takes; may be null */
};
const struct option_info *option_info(enum option_id id);

/* Whether the argument must be there, and may be the next word. */
static inline bool option_needs_argument(const struct option_info *info)
{
    return info->argument != NULL && info->argument[0] != '[';
}

/* ---- option_words.c: lists of words -------------------------------------------------------------
 *
 * A list function appends its words to a buffer, with a blank between two words. */

void words_mask(struct buf *words);
void words_commands(struct buf *words);

/* Appends a line for each strategy, for --help. */
void help_strategies(struct buf *out);

/* Appends n words, each after a prefix, with ", " between two and `last` before the last one:
 * "--a, --b or --c". */
void words_join(const char *prefix, const char *const *list, int n, const char *last,
                struct buf *out);

/* The index of a word in the list that `words` makes; -1 for an unknown word, with a message that
 * gives the nearest word and the list.  what: "command". */
int words_find(const char *what, const char *word, void (*words)(struct buf *words),
               struct status *st);

/* ---- main.c: the commands -------------------------------------------------------------------- */

enum { EXIT_USAGE = 2, EXIT_NO_RESULT = 3, EXIT_REGRESSION = 4, EXIT_INTERRUPTED = 130 };
enum { EXITS_NO_RESULT = 1, EXITS_REGRESSION = 2, EXITS_INTERRUPTED = 4 };

struct command {
    const char *name;
    const char *operands; /* "": none, "A [B]": one or two, "A...": one or more, "[A...]": any */
    const char *summary;
    option_bits options, required;    /* OPT() bits of the options that it takes, that it needs */
    bool each;                        /* takes lists of batch sizes and sequence lengths */
    unsigned exits;                   /* EXITS_ bits: exit codes beside 0, 1 and 2 */
    const char *about;                /* a paragraph for --help; may be null */
    void (*more)(struct buf *out);    /* appends lines made from tables to --help; may be null */
    const char *examples;             /* one a line */
    void (*words)(struct buf *words); /* appends the operands that it takes; may be null */
    /* Whether run() goes through the lists of sizes by itself; null: it never does. */
    bool (*whole)(const struct options *o);
    int (*run)(const struct options *o, struct status *st); /* an exit status, or -1 */
};

bool each_whole(const struct options *o); /* in each.c: true, for who always does */

/* In the order of --help: those of every day, then the others. */
#define COMMANDS_DAILY(X) X(search) X(query) X(explain) X(export) X(ship) X(report) X(doctor)
#define COMMANDS_RESEARCH(X)                                                                       \
    X(translate)                                                                                   \
    X(mask)                                                                                        \
    X(generate)                                                                                    \
    X(bench) X(accuracy) X(replay) X(train) X(predict) X(sweep) X(db) X(config) X(completion)
#define COMMANDS(X) COMMANDS_DAILY(X) COMMANDS_RESEARCH(X)

#define X(name)     extern const struct command cmd_##name;
COMMANDS(X)
#undef X

extern const struct command *const commands[];
extern const int command_count;

/* ---- exit_code.c ----------------------------------------------------------------------------- */

/* How a command exits that fails with this status. */
int exit_code_of(const struct status *st);

/* ---- numbers.c ------------------------------------------------------------------------------- */

/* How many decimals of a time are printed for people.  Small workloads take microseconds. */
int ms_decimals(double ms);

/* A real; JSON's null if the value is not finite. */
json_t *json_number(double value);

/* Members for json_pack(), "so so so" and "so so so so": a time in milliseconds with its interval,
 * and what a layer takes. */
#define MS_MEMBERS(ms)                                                                             \
    "median_ms", json_number((ms).median), "ci_low_ms", json_number((ms).low), "ci_high_ms",       \
        json_number((ms).high)
#define LAYER_MEMBERS(ms, layers)                                                                  \
    MS_MEMBERS(ms), "us_per_layer", json_number(1e3 * (ms).median / (layers))

/* ---- output.c: rows as a table, JSON, NDJSON or CSV ---------------------------------------------
 *
 * A row is a JSON object.  JSON and NDJSON print all of its members; tables and CSV print the
 * listed columns.  Where no column has a title, no table is printed.  A table has at most 100
 * columns: wide cells of text take several lines. */

struct column {
    const char *key;   /* the path to a member, "a" or "list.0.a"; the column's name in CSV */
    const char *title; /* in tables; null: tables leave the column out */
    int decimals;      /* of reals in tables */
};
/* As ms_decimals() says; two digits at least; "3.1e-07". */
enum { DECIMALS_MS = -2, DECIMALS_TWO = -3, DECIMALS_SHORT = -4 };

struct output {
    enum format format;
    const struct column *columns;
    int column_count, rows;
    json_t *kept;    /* of a table: all rows, since they decide the columns' widths */
    bool skip_empty; /* leave out of a table the columns that no row fills; at first false */
};

void output_begin(struct output *out, enum format format, const struct column *columns, int count);
void output_row(struct output *out, json_t *row); /* takes the row over */
void output_end(struct output *out);

/* All of that with the rows of an array, which stays the caller's. */
void output_rows(enum format format, const struct column *columns, int count, bool skip_empty,
                 const json_t *rows);

/* Whether people read the output: a table on a terminal. */
bool output_is_terminal(enum format format);

/* Prints one object: as indented JSON, or as the only row of another format.  Takes it over. */
void output_object(enum format format, const struct column *columns, int count, json_t *object);

/* ---- json_text.c: a value as text ------------------------------------------------------------ */

/* Text from anywhere, such as a path: JSON takes UTF-8 alone, so other bytes become '?'. */
json_t *json_text(const char *text);

/* The same; null where there is no text or an empty one. */
json_t *json_text_or_null(const char *text);

/* Appends a value as JSON in which all is escaped that utf8_hidden() knows. */
void json_add(const json_t *value, size_t flags, struct buf *out);

/* ---- note.c: lines about what happens, to stderr ------------------------------------------------
 *
 * Nothing with --quiet; each is reported as an event. */

void note(const struct options *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The same for who passes a line on, such as struct bench_options; options: a struct options. */
void note_line(void *options, const char *line);

/* ---- progress.c: what a command does while it takes long ----------------------------------------
 *
 * Every command shows the line of base/progress.c on stderr, unless --quiet is given: a thread
 * draws it, so that the time goes on where no step is reported.  With --events each step is a JSON
 * object in a file. */

/* Before and after a command.  progress_end() returns -1 if the events could not be written. */
int progress_begin(const struct options *o, const char *command, struct status *st);
int progress_end(int exit_status, struct status *st);

/* Removes the line for good.  Commands call it before they print their first result. */
void progress_hide(void);

/* A step_report of the command, and one of parts of its steps. */
void progress_step(void *ctx, const struct step *step);
void progress_detail(void *ctx, const struct step *step);

/* A step of a search. */
void progress_search(void *ctx, const struct tune_state *state);

/* Reports how a row of a sweep ended, and where. */
void progress_row(const char *row, const char *state, const char *target);

/* Prints a line in UTF-8 to stderr in place of the line of progress; reports it as an event. */
void progress_note(bool quiet, const char *line);

/* ---- workload.c: from options to a workload and its study ------------------------------------ */

/* Reads target and workload from the options and checks them.  Builds the mask's bits if `build` is
 * set, or for its key if the mask is a file.  Release *w in any case. */
int workload_from_options(const struct options *o, bool build, struct target_name *target,
                          struct workload *w, struct status *st);

/* The two steps of workload_from_options(): all but the mask's bits, then the mask's bits. */
int workload_read(const struct options *o, struct target_name *target, struct workload *w,
                  struct status *st);
int workload_read_mask(const struct options *o, struct workload *w, struct status *st);

/* Whether the options name a model by its workload: any of the workload's options but --seed is
 * given.  Else --name names it.  STATUS_USAGE where both do. */
int model_of_workload(const struct options *o, bool *out, struct status *st);

/* Reads --arch; an empty list if it is not given. */
int archs_from_options(const struct options *o, enum target_kind target, struct arch_list *out,
                       struct status *st);

/* Finds the stored study of the workload; of several, the one that differs least from this device,
 * protocol and inputs.  STATUS_NOT_FOUND if none has a plan that works. */
int study_of_workload(const struct options *o, struct db *db, struct target_name target,
                      const struct workload *w, int64_t *study, struct status *st);

/* The first that is found of: the workload on the device here or another of its model; its mask
 * with other parameters on these; the workload on any device; its mask with other parameters on
 * any.  1: found, 0: none, -1: failed. */
int study_near_workload(const struct options *o, struct db *db, struct target_name target,
                        const struct workload *w, int64_t *study, struct status *st);

/* The first of these alone: the workload on the device here or another of its model. */
int study_of_device(const struct options *o, struct db *db, struct target_name target,
                    const struct workload *w, int64_t *study, struct status *st);

/* ---- output_places.c: checks of places to write to, made before anything is measured --------- */

/* STATUS_USAGE unless the file can be written.  Keeps standard output for it if that is its name.
 * what: "--svg". */
int file_check_writable(const char *what, const char *path, struct status *st);

/* STATUS_USAGE if a file to write is one that the command reads, such as the database. */
int outputs_check_apart(const struct options *o, const struct command *c, struct status *st);

/* STATUS_USAGE unless the directory is missing or empty.  what: "--dump". */
int directory_check_vacant(const char *what, const char *dir, struct status *st);

/* ---- session.c: what a command about one workload holds open --------------------------------- */

struct session {
    struct target_name target;
    struct workload workload;
    struct bench *bench; /* null: no device is open */
    struct db *db;
    int64_t study; /* 0: none is open */
    char *pack;    /* the file that the database was read from, owned; null: it is none */
};

/* From then on the first SIGINT, SIGTERM or SIGHUP sets session_stop, the second ends fuseplan. */
void session_catch_signals(void);
extern volatile sig_atomic_t session_stop;

/* Opens a database that the command line names to be read: STATUS_USAGE if there is none. */
int operand_open(const char *path, struct db **out, struct status *st);

/* Opens all but the study, and catches signals.  seed: of inputs and weights.  mode: of the
 * database; to read, one that does not exist is left null.  Close *out in any case. */
int session_open(const struct options *o, uint64_t seed, enum db_mode mode, struct session *out,
                 struct status *st);

/* Where to look for a study of a workload. */
enum scope {
    SCOPE_STORED, /* in the database: study_of_workload() */
    SCOPE_KNOWN,  /* in packs too, before the database is asked for other devices: packs_find() */
    SCOPE_NEAR    /* in both; where no plan of the workload ran, a study that stands in for it is as
                     good: study_near_workload() */
};

/* Opens the workload and its study; opens no device.  mode: of the database, to read unless the
 * scope is SCOPE_STORED.  Close *out in any case. */
int session_open_study(const struct options *o, enum db_mode mode, enum scope scope,
                       struct session *out, struct status *st);
void session_close(struct session *s);

/* Notes what makes the times so far doubtful: other processes on the GPU, a clock slowed down. */
void session_note_disturbance(const struct options *o, const struct session *s);

/* ---- known.c: the workloads that a database knows -------------------------------------------- */

/* Appends the options that name a stored workload: "-b 1 -s 128 -m causal". */
void known_options(const struct db_workload *w, const char *target_kind, struct buf *out);

/* STATUS_NOT_FOUND with the message of `missing` and the workloads that are known; returns -1. */
int known_refuse(struct db *db, const struct status *missing, struct status *st);

/* ---- plan_text.c: plans and choices as text and JSON ----------------------------------------- */

/* "0-1 2-6": the segments of two operators or more; "" where there are none. */
json_t *plan_fused_json(struct plan p);

/* [[0, 0], [1, 1], ...]: all segments in operator numbers. */
json_t *plan_segments_json(struct plan p);

/* A choice's schedule: "rows=8 split=2". */
json_t *schedule_json(const struct choice *c);
