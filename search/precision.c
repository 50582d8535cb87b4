#include "search/precision.h"
#include "search/study_int.h"

#include <jansson.h>

/* ---- what a precision loses ------------------------------------------------------------------ */

double precision_error(const struct precision_errors *e, unsigned precision)
{
    double squares = 0;
    if (precision <= GEMM_ALL && !isnan(e->measured[precision]))
        return e->measured[precision];
    for (int g = 0; g < GEMM_COUNT; g++)
        if ((precision >> g & 1) != 0)
            squares += e->measured[1u << g] * e->measured[1u << g];
    return precision != 0 ? sqrt(squares) : NAN;
}

static void forget_errors(struct precision_errors *e)
{
    for (unsigned p = 0; p <= GEMM_ALL; p++)
        e->measured[p] = NAN;
}

/* "qkv ffn1", as accuracy prints it; -1: it is something else. */
static int gemms_of(const json_t *text)
{
    unsigned found = 0;
    if (!json_is_string(text))
        return -1;
    SCOPED char *names = mem_strdup(json_string_value(text));
    for (char *blank = names; (blank = strchr(blank, ' ')) != NULL;)
        *blank = ',';
    bool read = precision_parse(names, &found, STATUS_IGNORED) == 0;
    return read ? (int)found : -1;
}

/* Rows of other types, and of a scale for each column, are left out; before there was bf16 beside
 * e4m3, fp16 was not named. */
static void read_row(const json_t *row, const char *dtype, struct precision_errors *out)
{
    const char *precision = json_string_value(json_object_get(row, "precision"));
    const char *scales = json_string_value(json_object_get(row, "weight_scales"));
    const json_t *errors = json_object_get(row, "errors");
    const json_t *last = json_array_get(errors, json_array_size(errors) - 1);
    if (precision == NULL || !json_is_number(last))
        return;
    const json_t *named = json_object_get(row, "beside");
    const char *beside = named != NULL ? json_string_value(named) : dtypes[DTYPE_FP16].name;
    if (strcmp(precision, dtype) == 0)
        out->measured[0] = json_number_value(last);
    bool fp8 = strcmp(precision, "fp8") == 0 && beside != NULL && strcmp(beside, dtype) == 0;
    int gemms = fp8 ? gemms_of(json_object_get(row, "gemms")) : -1;
    if (gemms > 0 && scales != NULL && strcmp(scales, "tensor") == 0)
        out->measured[gemms] = json_number_value(last);
}

int precision_errors_read(const char *path, enum dtype dtype, struct precision_errors *out,
                          struct status *st)
{
    enum { MOST = 16 << 20 };
    SCOPED_BUF text = BUF_INIT;
    size_t i;
    json_t *row;
    forget_errors(out);
    if (file_read_text(path, MOST, &text, st) != 0)
        return status_prefix(st, "--accuracy");
    json_auto_t *rows = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
    json_array_foreach(rows, i, row) read_row(row, dtypes[dtype].name, out);
    for (int g = 0; g < GEMM_COUNT; g++)
        if (isnan(out->measured[1u << g]))
            return status_set(
                st, STATUS_USAGE,
                "--accuracy: '%s' has no error of %s alone in fp8 beside %s; expected what "
                "'fuseplan accuracy -t %s --calibration FILE --format json' prints",
                path, gemm_names[g], dtypes[dtype].name, dtypes[dtype].name);
    return 0;
}

/* ---- what is stored of it -------------------------------------------------------------------- */

#define STRATEGY "precisions"

/* Appends the options of a comparison, as JSON: {"errors": {"qkv,ffn1": 0.02}}, all measured. */
static void add_options(const struct precision_errors *e, struct buf *out)
{
    const char *before = "";
    buf_adds(out, "{\"errors\": {");
    for (unsigned p = 0; p <= GEMM_ALL; p++) {
        if (isnan(e->measured[p]))
            continue;
        buf_addf(out, "%s\"", before);
        precision_text(p, "fp16", out);
        buf_adds(out, "\": ");
        number_add(e->measured[p], out);
        before = ", ";
    }
    buf_adds(out, "}}");
}

static void read_options(void *ctx, const struct db_search *s)
{
    struct precision_errors *out = ctx;
    const char *name;
    json_t *value;
    unsigned precision;
    if (strcmp(s->strategy, STRATEGY) != 0)
        return;
    forget_errors(out);
    json_auto_t *options = json_loads(s->options, 0, NULL);
    json_object_foreach(json_object_get(options, "errors"), name, value)
    {
        if (precision_parse(name, &precision, STATUS_IGNORED) == 0 && json_is_number(value))
            out->measured[precision] = json_number_value(value);
    }
}

int precision_errors_stored(struct db *db, int64_t study, struct precision_errors *out,
                            struct status *st)
{
    forget_errors(out);
    return db_searches(db, study, read_options, out, st);
}

bool precision_has_plans(const struct build_target *t, unsigned precision)
{
    struct build_target with = *t;
    with.precision = precision;
    return build_check(&with, t->workload, STATUS_IGNORED) == 0;
}

int precisions_within(const struct precision_errors *e, double most, const struct build_target *t,
                      unsigned out[GEMM_ALL])
{
    int count = 0;
    for (unsigned p = GEMM_ALL; p > 0; p--) { /* one that holds another comes before it */
        bool within = precision_error(e, p) <= most;
        for (int i = 0; i < count; i++)
            within = within && (p & ~out[i]) != 0;
        if (within && precision_has_plans(t, p))
            out[count++] = p;
    }
    return count;
}

/* ---- what plans there are -------------------------------------------------------------------- */

int plans_possible(const struct build_target *t, struct plan *plans, int count)
{
    SCOPED_BY(segment_table_release) struct segment_table table;
    int kept = 0;
    segment_table_init(&table, t);
    for (int i = 0; i < count; i++) {
        int slots[OP_COUNT], n = plan_slots(plans[i], slots), k = 0;
        while (k < n && table.slots[slots[k]].count > 0)
            k++;
        if (k == n)
            plans[kept++] = plans[i];
    }
    return kept;
}

/* ---- side by side ---------------------------------------------------------------------------- */

enum { CONTENDERS = GEMM_ALL + 1 + BASELINES_MAX };

struct contenders {
    int count;
    struct candidate candidates[CONTENDERS];
    struct trial trials[CONTENDERS];
};

/* The best plan known of a precision; 0: none is. */
static int add_best(struct bench *b, struct db *db, int64_t study, unsigned precision,
                    struct contenders *c, struct status *st)
{
    SCOPED_BY(db_best_release) struct db_best best;
    struct status none = STATUS_INIT;
    struct build_target target = *bench_target(b);
    target.precision = precision;
    db_set_precision(db, precision);
    if (db_best(db, study, &best, &none) != 0)
        return status_unless_missing(&none, st);
    bool known = candidate_of_best(&best, &target, &c->candidates[c->count], &none) == 0;
    c->count += known;
    return known;
}

/* Baselines run as in the last comparison, so that the next search need not compare them again. */
static int add_baselines(struct bench *b, struct db *db, int64_t study,
                         const struct baselines *baselines, struct contenders *c, struct status *st)
{
    struct build_target target = *bench_target(b);
    target.precision = 0;
    const struct choice_source from = {.db = db, .study = study, .target = &target};
    db_set_precision(db, 0);
    for (int i = 0; i < baselines->count; i++) {
        struct candidate *out = &c->candidates[c->count];
        bool there = c->count > 0 && c->candidates[0].precision == 0 &&
                     plan_equal(c->candidates[0].plan, baselines->plans[i]);
        if (there)
            continue;
        if (study_candidate(&from, baselines->plans[i], out, st) != 0)
            return -1;
        out->packed = bench_workload(b)->lengths != NULL;
        c->count++;
    }
    return 0;
}

static int time_and_store(struct bench *b, struct db *db, int64_t study, const char *options,
                          struct contenders *c, struct status *st)
{
    char search[HASH_TEXT_SIZE];
    const struct sampling how = final_sampling(bench_target(b)->kind);
    bench_limit(b, INFINITY); /* a search before it may have spent its time */
    if (db_search_start(db, study, STRATEGY, options, search, st) != 0 ||
        bench_compare(b, c->candidates, c->count, &how, c->trials, st) != 0)
        return -1;
    return comparison_store(db, study, c->candidates, c->trials, c->count, search, search, st) != 0
               ? -1
               : db_search_end(db, search, "done", st);
}

int compare_precisions(struct bench *b, struct db *db, const unsigned *precisions, int count,
                       const struct baselines *baselines, const struct precision_errors *errors,
                       struct status *st)
{
    SCOPED struct contenders *c = mem_alloc(1, sizeof(*c));
    SCOPED_BUF options = BUF_INIT;
    int64_t study;
    add_options(errors, &options);
    *c = (struct contenders){.count = 0};
    int result = study_open(b, db, &study, st);
    int found = result == 0 ? add_best(b, db, study, 0, c, st) : -1;
    if (found == 0)
        result = status_set(st, STATUS_NOT_FOUND, "no plan without e4m3 is known");
    for (int i = 0; i < count && found >= 0 && result == 0; i++)
        if (precisions[i] != 0)
            found = add_best(b, db, study, precisions[i], c, st);
    if (found < 0 || (result == 0 && (add_baselines(b, db, study, baselines, c, st) != 0 ||
                                      time_and_store(b, db, study, options.ptr, c, st) != 0)))
        result = -1;
    for (int i = 0; i < c->count; i++)
        trial_release(&c->trials[i]);
    db_set_precision(db, bench_target(b)->precision);
    return result;
}
