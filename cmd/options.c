#include "cmd/cmd.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsers: text -> field ------------------------------------------------------------------ */

struct row {
    struct option_info info;
    int (*parse)(const struct row *row, const char *what, const char *text, void *field,
                 struct status *st); /* null: only `given` matters */
    size_t field;                    /* offset in struct options */
    double lo, hi;                   /* of numbers */
};

static int parse_int(const struct row *row, const char *what, const char *text, void *field,
                     struct status *st)
{
    int64_t value;
    if (number_parse(what, text, (int64_t)row->lo, (int64_t)row->hi, &value, st) < 0)
        return -1;
    *(int *)field = (int)value;
    return 0;
}

/* A size.  How large one may be is workload_check()'s to say, with the memory that it would take.
 */
static int parse_size(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    struct status not_one = STATUS_INIT;
    int64_t value;
    (void)row;
    if (number_parse(what, text, 1, INT64_MAX, &value, &not_one) < 0)
        return status_set(
            st, STATUS_USAGE,
            "%s: '%s' is not a size; give a whole number above 0, of at most 18 digits", what,
            text);
    *(int *)field = value < INT_MAX ? (int)value : INT_MAX;
    return 0;
}

static int parse_seed(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    int64_t value;
    (void)row;
    if (number_parse(what, text, 0, INT64_MAX, &value, st) < 0)
        return -1;
    *(uint64_t *)field = (uint64_t)value;
    return 0;
}

static int parse_double(const struct row *row, const char *what, const char *text, void *field,
                        struct status *st)
{
    return number_parse_double(what, text, row->lo, row->hi, field, st);
}

static int parse_text(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    (void)row;
    if (text[0] == '\0')
        return status_set(st, STATUS_USAGE, "%s: the text is empty", what);
    *(const char **)field = text;
    return 0;
}

/* 90, 90s, 3m, 1.5h */
static int parse_seconds(const struct row *row, const char *what, const char *text, void *field,
                         struct status *st)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    char *digits = mem_strdup(text);
    size_t len = strlen(digits);
    double scale = 1, *out = field;
    for (size_t i = 0; i < ARRAY_LEN(units) && len > 1 && scale == 1; i++)
        if (digits[len - 1] == units[i].unit) {
            scale = units[i].seconds;
            digits[len - 1] = '\0';
            break;
        }
    int rc = number_parse_double(what, digits, row->lo, row->hi, out, st);
    *out *= scale;
    free(digits);
    return rc;
}

/* Which word of a list it is. */
static int parse_word(const char *what, const char *text, const char *const *words, int n,
                      struct status *st)
{
    for (int i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    struct buf all;
    buf_init(&all);
    for (int i = 0; i < n; i++)
        buf_addf(&all, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", words[i]);
    status_set(st, STATUS_USAGE, "%s: '%s' is unknown; expected %s", what, text, all.ptr);
    buf_release(&all);
    return -1;
}

static const char *const format_names[] = {"table", "json", "ndjson", "csv"};
static const char *const init_names[] = {"uniform", "notes"};
static const char *const feature_names[] = {[FEATURES_BITS] = "bits", [FEATURES_PLAN] = "plan"};

static int parse_format(const struct row *row, const char *what, const char *text, void *field,
                        struct status *st)
{
    (void)row;
    int i = parse_word(what, text, format_names, ARRAY_LEN(format_names), st);
    if (i < 0)
        return -1;
    *(enum format *)field = (enum format)i;
    return 0;
}

static int parse_init(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    (void)row;
    int i = parse_word(what, text, init_names, ARRAY_LEN(init_names), st);
    if (i < 0)
        return -1;
    *(bool *)field = i == 1;
    return 0;
}

static int parse_features(const struct row *row, const char *what, const char *text, void *field,
                          struct status *st)
{
    (void)row;
    int i = parse_word(what, text, feature_names, ARRAY_LEN(feature_names), st);
    if (i < 0)
        return -1;
    *(enum feature_set *)field = (enum feature_set)i;
    return 0;
}

static int parse_rigor(const struct row *row, const char *what, const char *text, void *field,
                       struct status *st)
{
    (void)row;
    int i = parse_word(what, text, rigor_names, RIGOR_COUNT, st);
    if (i < 0)
        return -1;
    *(enum rigor *)field = (enum rigor)i;
    return 0;
}

/* ---- words: what may follow an option -------------------------------------------------------- */

static void add_words(struct buf *out, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

static void format_words(struct buf *out)
{
    add_words(out, format_names, ARRAY_LEN(format_names));
}

static void init_words(struct buf *out)
{
    add_words(out, init_names, ARRAY_LEN(init_names));
}

static void feature_words(struct buf *out)
{
    add_words(out, feature_names, ARRAY_LEN(feature_names));
}

static void rigor_words(struct buf *out)
{
    add_words(out, rigor_names, RIGOR_COUNT);
}

static void target_words(struct buf *out)
{
    add_words(out, target_names, TARGET_COUNT);
}

static void arch_option_words(struct buf *out)
{
    arch_words(" ", out);
}

static void dtype_words(struct buf *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", dtypes[i].name);
}

static void strategy_words(struct buf *out)
{
    for (int i = 0; i < strategy_count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", strategies[i].name);
}

static void mask_words(struct buf *out)
{
    for (int i = 0; i < mask_kind_count(); i++) {
        const char *name, *usage, *summary;
        mask_kind_info(i, &name, &usage, &summary);
        buf_addf(out, "%s%s", i > 0 ? " " : "", name);
    }
}

/* ---- the table --------------------------------------------------------------------------------
 */

#define FIELD(name) offsetof(struct options, name)

enum { JOBS_MAX = 1024 };

/* clang-format off */
static const struct row option_rows[] = {
    [OPTION_BATCH] = {{"batch", 'b', "N", "sequences in a batch", NULL}, parse_size, FIELD(batch), 0, 0},
    [OPTION_SEQ_LEN] = {{"seq-len", 's', "N", "tokens of a sequence", NULL}, parse_size, FIELD(seq_len), 0, 0},
    [OPTION_MASK] = {{"mask", 'm', "MASK", "attention mask (full); 'fuseplan mask --help' lists them", mask_words}, parse_text, FIELD(mask), 0, 0},
    [OPTION_HEADS] = {{"heads", 'H', "N", "attention heads (12)", NULL}, parse_size, FIELD(heads), 0, 0},
    [OPTION_HEAD_SIZE] = {{"head-size", 'W', "N", "columns of a head (64)", NULL}, parse_size, FIELD(head_size), 0, 0},
    [OPTION_LAYERS] = {{"layers", 'L', "N", "layers, each with weights of its own (12)", NULL}, parse_size, FIELD(layers), 0, 0},
    [OPTION_FFN] = {{"ffn", 0, "N", "feed-forward size (4 * heads * head size)", NULL}, parse_size, FIELD(ffn), 0, 0},
    [OPTION_EPS] = {{"eps", 0, "X", "of the layernorms (1e-5)", NULL}, parse_double, FIELD(eps), 0, 1},
    [OPTION_DTYPE] = {{"dtype", 't', "TYPE", "type of tensors and weights (fp32 on cpu, fp16 on cuda)", dtype_words}, parse_text, FIELD(dtype), 0, 0},
    [OPTION_LENGTHS] = {{"lengths", 0, "N,N,...", "real tokens of each sequence; the rest is padding", NULL}, parse_text, FIELD(lengths), 0, 0},
    [OPTION_AVG_SEQ_LEN] = {{"avg-seq-len", 0, "N", "draw lengths with this average", NULL}, parse_size, FIELD(avg_seq_len), 0, 0},
    [OPTION_TARGET] = {{"target", 0, "TARGET", "cpu, cuda or cuda:N (cuda where there is one, else cpu)", target_words}, parse_text, FIELD(target), 0, 0},
    [OPTION_INIT] = {{"init", 0, "RANGES", "uniform: weights in +-0.05; notes: all in +-0.4", init_words}, parse_init, FIELD(notes_init), 0, 0},
    [OPTION_SEGMENTS] = {{"segments", 0, "I-J,...", "from segments in operator numbers to the value", NULL}, parse_text, FIELD(segments), 0, 0},
    [OPTION_HANDWRITTEN] = {{"handwritten", 0, NULL, "ops 2-6 by the hand-written operator", NULL}, NULL, 0, 0, 0},
    [OPTION_NPY] = {{"npy", 0, "FILE", "write the mask as a NumPy array, bool, (S,S) or (B,S,S)", NULL}, parse_text, FIELD(npy), 0, 0},
    [OPTION_SVG] = {{"svg", 0, "FILE", "write a picture of the mask", NULL}, parse_text, FIELD(svg), 0, 0},
    [OPTION_OUTPUT] = {{"output", 'o', "PATH", "what to write: a directory, or of db export-space a file", NULL}, parse_text, FIELD(output), 0, 0},
    [OPTION_NO_BASELINE] = {{"no-baseline", 0, NULL, "do not time the unfused plan and 41115 beside them", NULL}, NULL, 0, 0, 0},
    [OPTION_TRACE] = {{"trace", 0, "FILE", "write when each launch runs, as Chrome trace events", NULL}, parse_text, FIELD(trace), 0, 0},
    [OPTION_DUMP] = {{"dump", 0, "DIR", "write inputs, weights and output of the one value as .npy", NULL}, parse_text, FIELD(dump), 0, 0},
    [OPTION_FAIL_ABOVE] = {{"fail-above", 0, "RATIO", "exit 4 where a plan takes more than RATIO times its stored time", NULL}, parse_double, FIELD(fail_above), 0.01, 1000},
    [OPTION_SPACE] = {{"space", 0, "LO..HI|all", "values to choose from (32768..49152)", NULL}, parse_text, FIELD(space), 0, 0},
    [OPTION_BUDGET] = {{"budget", 0, "N", "stop at N plans stored for this workload", NULL}, parse_int, FIELD(budget), 1, PLAN_SPACE},
    [OPTION_TIME_LIMIT] = {{"time-limit", 0, "T", "stop after 90, 90s, 3m or 1.5h", NULL}, parse_seconds, FIELD(time_limit_s), 0.1, 1e6},
    [OPTION_RIGOR] = {{"rigor", 0, "RIGOR", "measure: a guided search; exhaustive: every plan (measure)", rigor_words}, parse_rigor, FIELD(rigor), 0, 0},
    [OPTION_STRATEGY] = {{"strategy", 0, "NAME", "how to choose plans (guided)", strategy_words}, parse_text, FIELD(strategy), 0, 0},
    [OPTION_DATA] = {{"data", 0, "FILE", "lines of 16 binary digits, blanks, a time in ms", NULL}, parse_text, FIELD(data), 0, 0},
    [OPTION_NAME] = {{"name", 0, "NAME", "of a model trained from a file (default)", NULL}, parse_text, FIELD(name), 0, 0},
    [OPTION_QUANTILE] = {{"quantile", 0, "Q", "share of the plans called high performance (0.1)", NULL}, parse_double, FIELD(quantile), 0.001, 0.999},
    [OPTION_FEATURES] = {{"features", 0, "SET", "what the model sees: plan, or the 16 bits alone (plan)", feature_words}, parse_features, FIELD(features), 0, 0},
    [OPTION_SEED] = {{"seed", 0, "N", "of all that is drawn (0)", NULL}, parse_seed, FIELD(seed), 0, 0},
    [OPTION_COMPILER] = {{"compiler", 0, "NAME", "a C compiler; on cuda auto, nvcc or nvrtc (auto: nvrtc if there)", NULL}, parse_text, FIELD(compiler), 0, 0},
    [OPTION_ARCH] = {{"arch", 0, "ARCH,...", "GPU architectures to compile for (the device's, else sm_80,sm_90a)", arch_option_words}, parse_text, FIELD(arch), 0, 0},
    [OPTION_JOBS] = {{"jobs", 'j', "N", "compilers at a time (one a core)", NULL}, parse_int, FIELD(jobs), 1, JOBS_MAX},
    [OPTION_DB] = {{"db", 0, "FILE", "database (FUSEPLAN_DB, else fuseplan.db in the data directory)", NULL}, parse_text, FIELD(db), 0, 0},
    [OPTION_FORMAT] = {{"format", 0, "FORMAT", "table, json, ndjson or csv", format_words}, parse_format, FIELD(format), 0, 0},
    [OPTION_QUIET] = {{"quiet", 'q', NULL, "only results and errors", NULL}, NULL, 0, 0, 0},
    [OPTION_VERBOSE] = {{"verbose", 'v', NULL, "say more of what happens", NULL}, NULL, 0, 0, 0},
    [OPTION_HELP] = {{"help", 'h', NULL, "this text", NULL}, NULL, 0, 0, 0},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(option_rows) == OPTION_COUNT, "a row for each option");
_Static_assert(OPTION_COUNT <= 64, "options are bits of 64");

const struct option_info *option_info(enum option_id id)
{
    return &option_rows[id].info;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* getopt_long's own form of what a command takes.  ids[] by position in longs. */
struct getopt_tables {
    struct option longs[OPTION_COUNT + 1];
    char letters[2 * OPTION_COUNT + 16];
};

/* "-:": operands in order as option 1, a missing argument as ':'.  Digits are letters so that the
 * operand -1 is told from an unknown option. */
static void make_tables(uint64_t options, struct getopt_tables *t)
{
    int n = 0;
    char *letter = t->letters + strlen(strcpy(t->letters, "-:0123456789"));
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = &option_rows[id].info;
        if ((options >> id & 1) == 0)
            continue;
        int has_argument = info->argument ? required_argument : no_argument;
        t->longs[n++] = (struct option){info->name, has_argument, NULL, 256 + id};
        if (info->letter == 0)
            continue;
        *letter++ = info->letter;
        if (info->argument)
            *letter++ = ':';
    }
    *letter = '\0';
    t->longs[n] = (struct option){0};
}

static int id_of_letter(int letter)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if (option_rows[id].info.letter == letter)
            return id;
    return -1;
}

static int unknown_option(const struct command *c, const char *text, struct status *st)
{
    const char *names[OPTION_COUNT];
    int n = 0;
    char *name = mem_strdup(text + strspn(text, "-"));
    name[strcspn(name, "=")] = '\0';
    for (int id = 0; id < OPTION_COUNT; id++)
        if (c->options >> id & 1)
            names[n++] = option_rows[id].info.name;
    const char *nearest = strncmp(text, "--", 2) == 0 ? nearest_word(name, names, n) : NULL;
    if (nearest)
        status_set(st, STATUS_USAGE, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    else
        status_set(st, STATUS_USAGE, "unknown option '%.*s'; 'fuseplan %s --help' lists all",
                   (int)strcspn(text, "="), text, c->name);
    free(name);
    return -1;
}

static int set_option(struct options *o, int id, const char *text, struct status *st)
{
    const struct row *row = &option_rows[id];
    char what[64];
    snprintf(what, sizeof(what), "--%s", row->info.name);
    o->given |= UINT64_C(1) << id;
    return row->parse ? row->parse(row, what, text, (char *)o + row->field, st) : 0;
}

static void init(struct options *o, int argc)
{
    struct workload defaults;
    workload_init(&defaults);
    *o = (struct options){.heads = defaults.heads,
                          .head_size = defaults.head_size,
                          .layers = defaults.layers,
                          .eps = defaults.eps,
                          .mask = "full",
                          .space = "32768..49152",
                          .strategy = "guided",
                          .name = "default",
                          .quantile = 0.1,
                          .features = FEATURES_PLAN,
                          .operands = mem_alloc((size_t)argc + 1, sizeof(*o->operands))};
    workload_release(&defaults);
}

/* One step of getopt_long; 1 at the end. */
static int parse_next(struct options *o, const struct command *c, const struct getopt_tables *t,
                      int argc, char **argv, struct status *st)
{
    int at = optind;
    int got = getopt_long(argc, argv, t->letters, t->longs, NULL);
    if (got == -1)
        return 1;
    if (got == 1) {
        o->operands[o->operand_count++] = optarg;
        return 0;
    }
    if (got >= '0' && got <= '9') { /* a negative number: skip the rest of its digits */
        while (optind == at)
            getopt_long(argc, argv, t->letters, t->longs, NULL);
        o->operands[o->operand_count++] = argv[at];
        return 0;
    }
    if (got == ':')
        return status_set(st, STATUS_USAGE, "option '%s' needs an argument", argv[optind - 1]);
    if (got == '?' && optopt == 0)
        return unknown_option(c, argv[at], st);
    if (got == '?' && optopt >= 256)
        return status_set(st, STATUS_USAGE, "option '--%s' takes no argument",
                          option_rows[optopt - 256].info.name);
    if (got == '?')
        return unknown_option(c, (char[]){'-', (char)optopt, '\0'}, st);
    return set_option(o, got >= 256 ? got - 256 : id_of_letter(got), optarg, st);
}

int options_parse(struct options *o, const struct command *c, int argc, char **argv,
                  struct status *st)
{
    struct getopt_tables tables;
    init(o, argc);
    make_tables(c->options, &tables);
    opterr = 0;
    optind = 1;
    int rc;
    do
        rc = parse_next(o, c, &tables, argc, argv, st);
    while (rc == 0);
    for (int i = optind; i < argc && rc > 0; i++) /* after "--" */
        o->operands[o->operand_count++] = argv[i];
    return rc > 0 ? 0 : -1;
}

void options_release(struct options *o)
{
    free(o->operands);
    *o = (struct options){0};
}
