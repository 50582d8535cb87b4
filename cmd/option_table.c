#include "cmd/options_int.h"

#include <inttypes.h>
#include <limits.h>

/* ---- parsers: text -> field ------------------------------------------------------------------ */

struct row {
    struct option_info info;
    int (*parse)(const struct row *row, const char *what, const char *text, void *field,
                 struct status *st); /* null: the option has no field */
    size_t field;                    /* offset in struct options */
    double lo, hi;                   /* bounds of a number */
};

static int parse_int(const struct row *row, const char *what, const char *text, void *field,
                     struct status *st)
{
    int64_t value;
    if (number_parse(what, text, (int64_t)row->lo, (int64_t)row->hi, &value, st) != 0)
        return -1;
    *(int *)field = (int)value;
    return 0;
}

/* A size, of at most `hi`.  One that an int holds is left to workload_check(), which names the
 * memory that it would take. */
static int parse_size(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    int64_t value;
    if (number_parse(what, text, 1, INT64_MAX, &value, STATUS_IGNORED) != 0)
        return status_set(st, STATUS_USAGE,
                          "%s: '%s' is not a size; give a whole number from 1 to %d", what, text,
                          (int)row->hi);
    if (value > INT_MAX)
        return status_set(st, STATUS_USAGE, "%s: %s is too large; give at most %d", what, text,
                          (int)row->hi);
    *(int *)field = (int)value;
    return 0;
}

/* Adds a number once; false if there is no room for it. */
static bool add_number(struct numbers *to, int number)
{
    int i = 0;
    while (i < to->count && to->items[i] != number)
        i++;
    if (i == (int)ARRAY_LEN(to->items))
        return false;
    to->items[i] = number;
    to->count += i == to->count;
    return true;
}

/* "1,2,4": sizes, each kept once. */
static int parse_sizes(const struct row *row, const char *what, const char *text, void *field,
                       struct status *st)
{
    struct numbers *out = field;
    SCOPED char *copy = mem_strdup(text);
    *out = (struct numbers){.count = 0};
    for (char *rest = copy, *one; (one = strsep(&rest, ",")) != NULL;) {
        int size = 0;
        if (parse_size(row, what, one, &size, st) != 0)
            return -1;
        if (!add_number(out, size))
            return status_set(st, STATUS_USAGE, "%s: more than %d sizes are given", what,
                              out->count);
    }
    return 0;
}

static int parse_seed(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    int64_t value;
    (void)row;
    if (number_parse(what, text, 0, INT64_MAX, &value, st) != 0)
        return -1;
    *(uint64_t *)field = (uint64_t)value;
    return 0;
}

static int parse_double(const struct row *row, const char *what, const char *text, void *field,
                        struct status *st)
{
    return number_parse_double(what, text, row->lo, row->hi, field, st);
}

/* "none" switches off what a preset has; without an argument it is on. */
static int parse_switch(const struct row *row, const char *what, const char *text, void *field,
                        struct status *st)
{
    int at = text != NULL ? words_find(what, text, row->info.words, st) : 0;
    *(bool *)field = text == NULL;
    return at < 0 ? -1 : 0;
}

/* A base with a factor or without, or "none", which is 0, into two fields one after the other. */
static int parse_rope(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    double *out = field;
    (void)row;
    if (strcmp(text, "none") != 0)
        return rope_parse(what, text, &out[0], &out[1], st);
    out[0] = out[1] = 0;
    return 0;
}

/* "fp16", "fp8" or "qkv,ffn1", as bits. */
static int parse_precision(const struct row *row, const char *what, const char *text, void *field,
                           struct status *st)
{
    (void)row;
    return precision_parse(text, field, st) == 0 ? 0 : status_prefix(st, "%s", what);
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

/* A range of values, into two fields one after the other. */
static int parse_range(const struct row *row, const char *what, const char *text, void *field,
                       struct status *st)
{
    unsigned *ends = field;
    (void)row;
    return plan_parse_range(text, ends, ends + 1, st) == 0 ? 0 : status_prefix(st, "%s", what);
}

/* "3/8": a shard and their number, into two fields one after the other. */
static int parse_shard(const struct row *row, const char *what, const char *text, void *field,
                       struct status *st)
{
    int64_t shard, shards = 0;
    int *out = field;
    SCOPED char *first = mem_strdup(text);
    char *slash = strchr(first, '/');
    bool read = slash != NULL;
    if (read)
        *slash = '\0';
    read = read &&
           number_parse(what, slash + 1, 1, (int64_t)row->hi, &shards, STATUS_IGNORED) == 0 &&
           number_parse(what, first, 0, shards - 1, &shard, STATUS_IGNORED) == 0;
    if (!read)
        return status_set(st, STATUS_USAGE,
                          "%s: '%s' is not I/N, a shard from 0 to N-1 and the number of shards, "
                          "such as 0/8",
                          what, text);
    out[0] = (int)shard;
    out[1] = (int)shards;
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
    SCOPED char *digits = mem_strdup(text);
    size_t len = strlen(digits);
    double scale = 1, value;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (len > 1 && text[len - 1] == units[i].unit) {
            scale = units[i].seconds;
            digits[len - 1] = '\0';
        }
    if (number_parse_double(what, digits, row->lo / scale, row->hi / scale, &value,
                            STATUS_IGNORED) != 0)
        return status_set(st, STATUS_USAGE,
                          "%s: '%s' is not a time from %gs to %gh; write 90, 90s, 3m or 1.5h", what,
                          text, row->lo, row->hi / 3600);
    *(double *)field = scale * value;
    return 0;
}

/* The index of a word among the option's words, into an int or an enumeration in their order. */
static int parse_word(const struct row *row, const char *what, const char *text, void *field,
                      struct status *st)
{
    int at = words_find(what, text, row->info.words, st);
    if (at >= 0)
        *(int *)field = at;
    return at < 0 ? -1 : 0;
}

/* "guided,random": names of strategies, each kept once. */
static int parse_strategies(const struct row *row, const char *what, const char *text, void *field,
                            struct status *st)
{
    struct numbers *out = field;
    SCOPED char *copy = mem_strdup(text);
    *out = (struct numbers){.count = 0};
    for (char *rest = copy, *one; (one = strsep(&rest, ",")) != NULL;) {
        int at = words_find(what, one, row->info.words, st);
        if (at < 0 || !add_number(out, at))
            return -1;
    }
    return 0;
}

/* "0.05,0.02": two shares. */
static int parse_noise(const struct row *row, const char *what, const char *text, void *field,
                       struct status *st)
{
    double *out = field;
    SCOPED char *copy = mem_strdup(text);
    char *comma = strchr(copy, ',');
    if (comma == NULL || strchr(comma + 1, ',') != NULL)
        return status_set(st, STATUS_USAGE,
                          "%s: '%s' is not two shares; give the noise of segments and of plans, "
                          "such as 0.05,0.05",
                          what, text);
    *comma = '\0';
    return number_parse_double(what, copy, row->lo, row->hi, &out[0], st) != 0
               ? -1
               : number_parse_double(what, comma + 1, row->lo, row->hi, &out[1], st);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define FIELD(name) offsetof(struct options, name)

enum { JOBS_MAX = 1024, SEEDS_MAX = 10000, SHARDS_MAX = 100000 };

/* clang-format off */
static const struct row option_rows[] = {
    [OPTION_BATCH] = {{"batch", 'b', "N", "sequences in a batch", NULL}, parse_sizes, FIELD(batches), 0, BATCH_MAX},
    [OPTION_SEQ_LEN] = {{"seq-len", 's', "N", "tokens of a sequence", NULL}, parse_sizes, FIELD(seq_lens), 0, SEQ_LEN_MAX},
    [OPTION_MASK] = {{"mask", 'm', "MASK", "attention mask (full); 'fuseplan mask --help' lists them", words_mask}, parse_text, FIELD(mask), 0, 0},
    [OPTION_PRESET] = {{"preset", 0, "NAME", "a known encoder: sizes, functions, attention mask, eps; options win", words_preset}, parse_word, FIELD(preset), 0, 0},
    [OPTION_MODEL] = {{"model", 0, "PATH", "a HuggingFace model's directory or config.json, as a preset", NULL}, parse_text, FIELD(model), 0, 0},
    [OPTION_HEADS] = {{"heads", 'H', "N", "attention heads (12)", NULL}, parse_size, FIELD(heads), 0, HEADS_MAX},
    [OPTION_HEAD_SIZE] = {{"head-size", 'W', "N", "columns of a head (64)", NULL}, parse_size, FIELD(head_size), 0, HEAD_SIZE_MAX},
    [OPTION_HIDDEN] = {{"hidden", 0, "N", "hidden size, the columns of a token (heads * head size)", NULL}, parse_size, FIELD(hidden), 0, HIDDEN_MAX},
    [OPTION_LAYERS] = {{"layers", 'L', "N", "layers, each with weights of its own (12)", NULL}, parse_size, FIELD(layers), 0, LAYERS_MAX},
    [OPTION_FFN] = {{"ffn", 0, "N", "feed-forward size (4 * hidden size)", NULL}, parse_size, FIELD(ffn), 0, FFN_MAX},
    [OPTION_EPS] = {{"eps", 0, "X", "epsilon of the norms (1e-5)", NULL}, parse_double, FIELD(eps), EPS_MIN, EPS_MAX},
    [OPTION_NORM] = {{"norm", 0, "PLACE", "norms behind attention and feed-forward, or before: post, pre (post)", words_norm}, parse_word, FIELD(norm), 0, 0},
    [OPTION_NORM_KIND] = {{"norm-kind", 0, "KIND", "layer: layernorm; rms: RMS norm without beta (layer)", words_norm_kind}, parse_word, FIELD(norm_kind), 0, 0},
    [OPTION_ACTIVATION] = {{"activation", 0, "NAME", "% (gelu)", words_activation}, parse_word, FIELD(activation), 0, 0},
    [OPTION_GATE] = {{"gate", 0, "[=none]", "feed-forward with a gate: activated columns times as many others", words_none}, parse_switch, FIELD(gate), 0, 0},
    [OPTION_ROPE] = {{"rope", 0, "THETA", "rotary embeddings of this base, such as 10000, or none", words_none}, parse_rope, FIELD(rope), 0, 0},
    [OPTION_SCORE_BIAS] = {{"score-bias", 0, "[=none]", "a number of each head and distance is added to scores, as ALiBi", words_none}, parse_switch, FIELD(score_bias), 0, 0},
    [OPTION_LOCAL_MASK] = {{"local-mask", 0, "MASK", "attention mask of local layers, between global ones, or none (none)", words_mask}, parse_text, FIELD(local_mask), 0, 0},
    [OPTION_LOCAL_ROPE] = {{"local-rope", 0, "THETA", "base of the rotary embeddings of local layers (that of --rope)", NULL}, parse_double, FIELD(local_rope), ROPE_THETA_MIN, ROPE_THETA_MAX},
    [OPTION_GLOBAL_EVERY] = {{"global-every", 0, "N", "with --local-mask: layers 0, N, 2N, ... are global", NULL}, parse_size, FIELD(global_every), 0, LAYERS_MAX},
    [OPTION_DTYPE] = {{"dtype", 't', "TYPE", "element type; cpu: fp32; cuda: fp16 (the default), bf16, tf32 or fp32", words_dtype}, parse_word, FIELD(dtype), 0, 0},
    [OPTION_LENGTHS] = {{"lengths", 0, "N,N,...", "real tokens of each sequence; the rest is padding", NULL}, parse_text, FIELD(lengths), 0, 0},
    [OPTION_AVG_SEQ_LEN] = {{"avg-seq-len", 0, "N", "draw the lengths at random with this average", NULL}, parse_size, FIELD(avg_seq_len), 0, SEQ_LEN_MAX},
    [OPTION_TARGET] = {{"target", 0, "TARGET", "cpu, cuda or cuda:N (cuda if there is a GPU, else cpu)", words_target}, parse_text, FIELD(target), 0, 0},
    [OPTION_INIT] = {{"init", 0, "RANGES", "drawn data; uniform: weights in +-0.05; wide: all in +-0.4 (uniform)", words_init}, parse_word, FIELD(ranges), 0, 0},
    [OPTION_WEIGHTS] = {{"weights", 0, "FILE", "weights of a HuggingFace model, not drawn ones (those beside --model)", NULL}, parse_text, FIELD(weights), 0, 0},
    [OPTION_PREFIX] = {{"prefix", 0, "NAME", "with --weights: what the model's names begin with, as bert", NULL}, parse_text, FIELD(prefix), 0, 0},
    [OPTION_INPUT] = {{"input", 0, "FILE", "rows of sentences, which fuseplan.write_rows() of Python writes", NULL}, parse_text, FIELD(input), 0, 0},
    [OPTION_CALIBRATION] = {{"calibration", 0, "FILE", "scales of fp8, by Python's fuseplan.calibrate(); 'weights': their own", NULL}, parse_text, FIELD(calibration), 0, 0},
    [OPTION_PRECISION] = {{"precision", 0, "TYPE", "GEMMs in e4m3: fp8, all; fp16, none; or of qkv,out,ffn1,ffn2 (fp16)", words_precision}, parse_precision, FIELD(precision), 0, 0},
    [OPTION_ERROR] = {{"error", 0, "E", "choose GEMMs in e4m3 whose error after all layers is at most E", NULL}, parse_double, FIELD(error), 1e-6, 1},
    [OPTION_ACCURACY] = {{"accuracy", 0, "FILE", "errors of a model in fp8, as 'accuracy --format json' prints them", NULL}, parse_text, FIELD(accuracy), 0, 0},
    [OPTION_PACKED] = {{"packed", 0, NULL, "calls with lengths run on packed tokens, without rows of padding", NULL}, NULL, 0, 0, 0},
    [OPTION_PADDED] = {{"padded", 0, NULL, "with lengths: the plans given compute rows of padding too", NULL}, NULL, 0, 0, 0},
    [OPTION_SEGMENTS] = {{"segments", 0, "I-J,...", "print the value that fuses these segments, in operator numbers", NULL}, parse_text, FIELD(segments), 0, 0},
    [OPTION_HANDWRITTEN] = {{"handwritten", 0, NULL, "with --segments: attention runs by the hand-written operator", NULL}, NULL, 0, 0, 0},
    [OPTION_NPY] = {{"npy", 0, "FILE", "write the attention mask as a NumPy array of bool, (S,S) or (B,S,S)", NULL}, parse_text, FIELD(npy), 0, 0},
    [OPTION_SVG] = {{"svg", 0, "FILE", "write a picture of the attention mask", NULL}, parse_text, FIELD(svg), 0, 0},
    [OPTION_OUTPUT] = {{"output", 'o', "PATH", "where to write: a directory; of db, report and sweep, a file", NULL}, parse_text, FIELD(output), 0, 0},
    [OPTION_FORCE] = {{"force", 0, NULL, "write where other files are: they stay, files of the same names do not", NULL}, NULL, 0, 0, 0},
    [OPTION_BUILD] = {{"build", 0, NULL, "run make in the directory", NULL}, NULL, 0, 0, 0},
    [OPTION_BASELINE] = {{"baseline", 0, "VALUE,...", "plans to compare with, or none (" BASELINE_DEFAULT ")", NULL}, parse_text, FIELD(baseline), 0, 0},
    [OPTION_DUMP] = {{"dump", 0, "DIR", "write inputs, weights and output of what ran as .npy files", NULL}, parse_text, FIELD(dump), 0, 0},
    [OPTION_STAMPS] = {{"stamps", 0, NULL, "on a GPU: say where a layer's time goes, by clocks in its kernels", NULL}, NULL, 0, 0, 0},
    [OPTION_FAIL_ABOVE] = {{"fail-above", 0, "RATIO", "exit 4 if a plan takes more than RATIO times its last comparison's time", NULL}, parse_double, FIELD(fail_above), 0.01, 1000},
    [OPTION_OP] = {{"op", 0, "OP", "time an operation alone in place of plans, attention: operators 1-6", words_op}, parse_word, FIELD(op), 0, 0},
    [OPTION_SPACE] = {{"space", 0, "LO..HI|all", "values of the plans to choose from (all)", NULL}, parse_range, FIELD(space), 0, 0},
    [OPTION_BUDGET] = {{"budget", 0, "N", "stop when N plans are stored for this workload; of replay, measured", NULL}, parse_int, FIELD(budget), 1, PLAN_SPACE},
    [OPTION_TIME_LIMIT] = {{"time-limit", 0, "T", "stop each workload's search after 90, 90s, 3m or 1.5h", NULL}, parse_seconds, FIELD(time_limit_s), 0.1, 3600e3},
    [OPTION_TOTAL_TIME] = {{"total-time", 0, "T", "for all workloads: each has its share of what is left", NULL}, parse_seconds, FIELD(total_time_s), 0.1, 3600e3},
    [OPTION_AGAIN] = {{"again", 0, NULL, "time the best plan known and the baselines anew, and nothing else", NULL}, NULL, 0, 0, 0},
    [OPTION_RETRY_FAILED] = {{"retry-failed", 0, NULL, "measure again what is stored as failed, and keep the old reasons", NULL}, NULL, 0, 0, 0},
    [OPTION_RIGOR] = {{"rigor", 0, "RIGOR", "measure; exhaustive: all plans (measure)", words_rigor}, parse_word, FIELD(rigor), 0, 0},
    [OPTION_STRATEGY] = {{"strategy", 0, "NAME", "how the search chooses plans (guided); replay takes several", words_strategy}, parse_strategies, FIELD(strategies), 0, 0},
    [OPTION_DATA] = {{"data", 0, "FILE", "times to train on: lines of 16 binary digits, blanks, milliseconds", NULL}, parse_text, FIELD(data), 0, 0},
    [OPTION_NAME] = {{"name", 0, "NAME", "name of a model trained from a file ('default'); of an exported library", NULL}, parse_text, FIELD(name), 0, 0},
    [OPTION_QUANTILE] = {{"quantile", 0, "Q", "the fastest share of plans, called high performance (0.1)", NULL}, parse_double, FIELD(quantile), 0.001, 0.999},
    [OPTION_SEED] = {{"seed", 0, "N", "seed of all random draws (0)", NULL}, parse_seed, FIELD(seed), 0, 0},
    [OPTION_SEEDS] = {{"seeds", 0, "N", "searches of each strategy, with the seeds 1 to N (20)", NULL}, parse_int, FIELD(seeds), 1, SEEDS_MAX},
    [OPTION_NOISE] = {{"noise", 0, "SEG,PLAN", "noise added to the times of segments and plans, as shares (0,0)", NULL}, parse_noise, FIELD(noise), 0, 1},
    [OPTION_NO_SEGMENT_TIMES] = {{"no-segment-times", 0, NULL, "tell strategies no times of segments alone", NULL}, NULL, 0, 0, 0},
    [OPTION_COMPILER] = {{"compiler", 0, "NAME", "cpu: a C compiler; cuda: nvcc, nvrtc or auto (nvrtc if it works)", NULL}, parse_text, FIELD(compiler), 0, 0},
    [OPTION_ARCH] = {{"arch", 0, "ARCH", "GPU architecture (the device's); export takes a list, or x86-64-v3", words_arch}, parse_text, FIELD(arch), 0, 0},
    [OPTION_JOBS] = {{"jobs", 'j', "N", "compilers that run at a time (one a core)", NULL}, parse_int, FIELD(jobs), 1, JOBS_MAX},
    [OPTION_SHARD] = {{"shard", 0, "I/N", "search part I, from 0, of N of the table", NULL}, parse_shard, FIELD(shard), 0, SHARDS_MAX},
    [OPTION_SHARDS] = {{"shards", 0, "N", "number of parts that a table is searched in (1)", NULL}, parse_int, FIELD(shards), 1, SHARDS_MAX},
    [OPTION_SAVE] = {{"save", 0, "DIR", "write results there as text, on any file system, after each row", NULL}, parse_text, FIELD(save), 0, 0},
    [OPTION_DB] = {{"db", 0, "FILE", "database ($FUSEPLAN_DB, else fuseplan.db in the data directory)", NULL}, parse_text, FIELD(db), 0, 0},
    [OPTION_EVENTS] = {{"events", 0, "FILE", "write what happens as NDJSON, a line an event", NULL}, parse_text, FIELD(events), 0, 0},
    [OPTION_FORMAT] = {{"format", 0, "FORMAT", "table, json, ndjson, csv, in some commands markdown (table)", words_format}, parse_word, FIELD(format), 0, 0},
    [OPTION_TOP] = {{"top", 0, "N", "print the N fastest plans", NULL}, parse_int, FIELD(top), 1, PLAN_SPACE},
    [OPTION_FAILED] = {{"failed", 0, NULL, "only trials that failed", NULL}, NULL, 0, 0, 0},
    [OPTION_OLDER_PROTOCOL] = {{"older-protocol", 0, NULL, "only results of an older protocol than this fuseplan's", NULL}, NULL, 0, 0, 0},
    [OPTION_DRY_RUN] = {{"dry-run", 0, NULL, "change nothing, print what would change", NULL}, NULL, 0, 0, 0},
    [OPTION_PACK] = {{"pack", 0, NULL, "only what says which plan is the best of each workload", NULL}, NULL, 0, 0, 0},
    [OPTION_QUIET] = {{"quiet", 'q', NULL, "print only results and errors", NULL}, NULL, 0, 0, 0},
    [OPTION_VERBOSE] = {{"verbose", 'v', NULL, "also print device, compiler and database", NULL}, NULL, 0, 0, 0},
    [OPTION_HELP] = {{"help", 'h', NULL, "print this text; '--help all': with all options", NULL}, NULL, 0, 0, 0},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(option_rows) == OPTION_COUNT, "a row for each option");
_Static_assert(OPTION_COUNT <= 128, "options are bits of 128");

const struct option_info *option_info(enum option_id id)
{
    return &option_rows[id].info;
}

int option_set(struct options *o, enum option_id id, const char *what, const char *text,
               struct status *st)
{
    const struct row *row = &option_rows[id];
    o->given |= (option_bits)1 << id;
    return row->parse != NULL ? row->parse(row, what, text, (char *)o + row->field, st) : 0;
}

static void add_word_at(void (*words)(struct buf *words), int at, struct buf *out)
{
    SCOPED_BUF text = BUF_INIT;
    char *rest;
    words(&text);
    const char *word = strtok_r(text.ptr, " ", &rest);
    while (at-- > 0)
        word = strtok_r(NULL, " ", &rest);
    buf_adds(out, word);
}

void option_text(const struct options *o, enum option_id id, struct buf *out)
{
    const struct row *row = &option_rows[id];
    const void *field = (const char *)o + row->field;
    const double *real = field;
    if (row->parse == parse_word)
        add_word_at(row->info.words, *(const int *)field, out);
    else if (row->parse == parse_text)
        buf_adds(out, *(const char *const *)field != NULL ? *(const char *const *)field : "");
    else if (row->parse == parse_switch)
        buf_adds(out, *(const bool *)field ? "true" : "none");
    else if (row->parse == parse_seed)
        buf_addf(out, "%" PRIu64, *(const uint64_t *)field);
    else if (row->parse == parse_size && *(const int *)field > 0)
        buf_addf(out, "%d", *(const int *)field);
    else if (row->parse == parse_double && real[0] > 0)
        number_add(real[0], out);
    else if (row->parse == parse_rope && real[0] > 0)
        rope_text(real[0], real[1], out);
    else if (row->parse == parse_rope)
        buf_adds(out, "none");
}
