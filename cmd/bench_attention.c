/* bench --op attention: the operators from the split of heads to their merge alone, 1-6 of BERT, a
 * row a workload.  With H heads of W columns, a row has
 *
 *   kept       pairs of a query and a key that the mask keeps, over all batch rows
 *   steps      64x64 blocks of pairs that the kernel computes: H * choice_blocks()
 *   FLOP       of kept pairs: 4 W H kept, as q k^T and p v take a multiply-add a column;
 *              of executed pairs: 4 W * 64 * 64 * steps
 *   us/step    time * units / steps; units are multiprocessors of a GPU, threads on a CPU */
#include "cmd/bench_int.h"
#include "cmd/options_int.h"
#include "cmd/plans.h"

/* What all workloads share, and their rows. */
struct attention_table {
    json_t *rows;
    int workloads, units;
    bool gpu;
};

/* ---- what runs ------------------------------------------------------------------------------- */

/* From the split of heads to their merge; from scores to context where there is none. */
static struct segment attention_of(const struct chain *c)
{
    struct segment s = {OP_COUNT, 0};
    for (int op = 0; op < OP_COUNT; op++) {
        enum op_kind kind = c->ops[op].kind;
        if ((kind == KIND_SPLIT || kind == KIND_SCORES) && op < s.first)
            s.first = (int8_t)op;
        if (kind == KIND_CONTEXT || kind == KIND_MERGE)
            s.last = (int8_t)op;
    }
    return s;
}

/* Puts the study that tells the fastest schedule known in the place of the session's. */
static int find_study(const struct options *o, struct session *s, struct status *st)
{
    struct found_study found;
    if (study_find_known(o, SCOPE_STORED, s->target, &s->workload, &found, st) != 0)
        return -1;
    db_close(s->db);
    s->db = found.db;
    s->study = found.study;
    return 0;
}

/* The fastest choice stored, else the default one.  known: whether one is stored. */
static int choose(const struct options *o, struct session *s, struct candidate *out, bool *known,
                  struct status *st)
{
    const struct build_target *target = bench_target(s->bench);
    const struct segment attention = attention_of(s->workload.chain);
    const unsigned fused = (1u << attention.last) - (1u << attention.first); /* nothing else is */
    const struct plan p = plan_of((uint16_t)fused, false);
    struct candidate all;
    struct segment_times times;
    *known = false;
    if (find_study(o, s, st) != 0)
        return -1;
    const struct choice_source from = {
        .db = s->db, .study = s->study, .target = target, .alone = true};
    if (study_candidate(&from, p, &all, st) != 0 ||
        (s->db != NULL && study_segments(s->db, s->study, target, &times, st) != 0))
        return -1;
    *known = s->db != NULL && !isnan(times.ms[slot_of(attention, false)]);
    *out = (struct candidate){.plan = p, .count = 1, .choices = {all.choices[attention.first]}};
    return 0;
}

/* ---- a row ----------------------------------------------------------------------------------- */

/* Adds what the mask makes of the time. */
static void set_steps(const struct session *s, const struct kernel *k, double us, json_t *row)
{
    const struct workload *w = &s->workload;
    const double pair_flops = 4.0 * w->head_size;
    double steps = w->heads * choice_blocks(&k->choice, w);
    double executed = pair_flops * MASK_BLOCK * MASK_BLOCK * steps;
    int units = bench_fingerprint(s->bench)->units;
    json_object_set_new(row, "kept", json_integer(llround(workload_pairs(w))));
    json_object_set_new(row, "block_steps", json_integer(llround(steps)));
    json_object_set_new(row, "units", json_integer(units));
    json_object_set_new(row, "us_per_step", json_number(us * units / steps));
    json_object_set_new(row, "executed_flops", json_number(executed));
    json_object_set_new(row, "executed_tflop_per_s", json_number(1e-6 * executed / us));
}

static json_t *row_of(const struct session *s, const struct kernels *k, const struct candidate *c,
                      bool known)
{
    const struct kernel *one = &k->items[0];
    bool ok = one->trial.status == TRIAL_OK;
    double us = 1e3 * trial_ms(&one->trial).median;
    json_t *row = workload_json(&s->workload, s->target.kind), *kernels = kernels_json(k, c);
    json_object_update(row, json_array_get(kernels, 0));
    json_decref(kernels);
    json_object_set_new(row, "schedule_known", json_boolean(known));
    json_object_set_new(row, "error", json_number(ok ? one->trial.error : NAN));
    set_steps(s, one, us, row);
    return row;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const struct column columns[] = {
    {"batch", NULL, 0},          {"seq_len", NULL, 0},
    {"mask", NULL, 0},           {"heads", NULL, 0},
    {"head_size", NULL, 0},      {"dtype", NULL, 0},
    {"implementation", NULL, 0}, {"schedule", NULL, 0},
    {"schedule_known", NULL, 0}, {"median_us", NULL, 0},
    {"ci_low_us", NULL, 0},      {"ci_high_us", NULL, 0},
    {"kept", NULL, 0},           {"block_steps", NULL, 0},
    {"units", NULL, 0},          {"us_per_step", NULL, 0},
    {"flops", NULL, 0},          {"executed_flops", NULL, 0},
    {"tflop_per_s", NULL, 0},    {"executed_tflop_per_s", NULL, 0},
    {"error", NULL, 0},          {"reason", NULL, 0},
};

#define WORKLOAD_COLUMNS                                                                           \
    {"mask", "mask", 0}, {"batch", "batch", 0},                                                    \
    {                                                                                              \
        "seq_len", "seq-len", 0                                                                    \
    }

static const struct column kernel_columns[] = {
    WORKLOAD_COLUMNS,     {"heads", "heads", 0},       {"head_size", "head size", 0},
    {"dtype", "type", 0}, {"implementation", "by", 0}, {"schedule", "schedule", 0},
};

static const struct column time_columns[] = {
    WORKLOAD_COLUMNS,
    {"median_us", "us", 2},
    {"ci_low_us", "low", 2},
    {"ci_high_us", "high", 2},
    {"block_steps", "steps", 0},
    {"us_per_step", "us/step", 3},
    {"tflop_per_s", "TFLOP/s", DECIMALS_TWO},
    {"executed_tflop_per_s", "executed", DECIMALS_TWO},
};

static void print(const struct attention_table *t, enum format format)
{
    if (format != FORMAT_TABLE && format != FORMAT_MARKDOWN) {
        output_rows(format, columns, ARRAY_LEN(columns), false, t->rows);
        return;
    }
    if (json_array_size(t->rows) == 0)
        return;
    output_rows(format, kernel_columns, ARRAY_LEN(kernel_columns), false, t->rows);
    putchar('\n');
    output_rows(format, time_columns, ARRAY_LEN(time_columns), false, t->rows);
    printf("\na step is a 64x64 block of one head, and us/step its time on one of %d %s;\n"
           "TFLOP/s counts the kept pairs, 'executed' all pairs of the steps\n",
           t->units, t->gpu ? "multiprocessors" : "threads");
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Says how to find a faster schedule, unless there is one schedule alone. */
static void note_default(const struct options *o, const struct session *s)
{
    const struct workload *w = &s->workload;
    if (choices_for(bench_target(s->bench), attention_of(w->chain), false, 0, NULL) == 1)
        return;
    SCOPED_BUF texts = BUF_INIT, command = BUF_INIT;
    struct db_workload stored = db_workload_of(w, &texts);
    stored.mask = o->mask; /* of a file its name, where the row has its hash */
    known_options(&stored, target_names[s->target.kind], &command);
    if (o->db != NULL) {
        buf_adds(&command, " --db ");
        buf_add_path(&command, o->db);
    }
    note(o,
         "batch %d, seq-len %d: this is the default schedule, as no time of attention is stored; "
         "'fuseplan search %s' finds a faster one",
         w->batch, w->seq_len, command.ptr);
}

/* Says what stands behind the schedule. */
static int note_schedule(const struct options *o, const struct session *s, bool known,
                         struct status *st)
{
    struct db_study study;
    SCOPED_BUF texts = BUF_INIT;
    if (!known) {
        note_default(o, s);
        return 0;
    }
    if (db_study_read(s->db, s->study, &texts, &study, st) != 0)
        return -1;
    if (strcmp(bench_fingerprint(s->bench)->device, study.target.device) != 0)
        note(o, "batch %d, seq-len %d: the schedule is the fastest of those measured on '%s'",
             s->workload.batch, s->workload.seq_len, study.target.device);
    return 0;
}

/* ---- a workload ------------------------------------------------------------------------------ */

static int measure_open(const struct options *o, struct attention_table *t, struct session *s,
                        struct kernels *k, struct status *st)
{
    struct candidate c;
    bool known;
    if (choose(o, s, &c, &known, st) != 0 || kernels_measure(s, &c, NULL, k, st) != 0)
        return -1;
    const struct trial *trial = &k->items[0].trial;
    session_note_disturbance(o, s);
    if (note_schedule(o, s, known, st) != 0)
        return -1;
    json_array_append_new(t->rows, row_of(s, k, &c, known));
    t->units = bench_fingerprint(s->bench)->units;
    t->gpu = s->target.kind == TARGET_CUDA;
    if (trial->status != TRIAL_OK) {
        kernels_complain(k);
        return EXIT_NO_RESULT;
    }
    if (o->dump != NULL &&
        bench_dump_segment(s->bench, &c.choices[0], o->dump, options_has(o, OPT(FORCE)), st) != 0)
        return -1;
    return EXIT_SUCCESS;
}

static int measure(void *ctx, const struct options *o, struct status *st)
{
    struct attention_table *t = ctx;
    SCOPED_BY(session_close) struct session s;
    SCOPED_BY(kernels_release) struct kernels k = {.count = 0};
    const struct step step = {.phase = "workloads",
                              .done = (int64_t)json_array_size(t->rows),
                              .total = t->workloads,
                              .left_s = NAN};
    progress_step(NULL, &step);
    return session_open(o, o->seed, DB_READ, &s, st) != 0 ? -1 : measure_open(o, t, &s, &k, st);
}

/* ---- all workloads --------------------------------------------------------------------------- */

static int check_options(const struct options *o, struct status *st)
{
    static const enum option_id of_plans[] = {OPTION_STAMPS, OPTION_BASELINE, OPTION_FAIL_ABOVE,
                                              OPTION_RETRY_FAILED};
    if (o->operand_count > 0)
        return status_set(st, STATUS_USAGE,
                          "'%s': --op attention times that operation alone and takes no VALUE; "
                          "leave one of them out",
                          o->operands[0]);
    for (size_t i = 0; i < ARRAY_LEN(of_plans); i++)
        if (options_has(o, (option_bits)1 << of_plans[i]))
            return status_set(st, STATUS_USAGE,
                              "--%s is about plans, and --op attention times none; leave one of "
                              "them out",
                              option_info(of_plans[i])->name);
    return 0;
}

int bench_attention(const struct options *o, struct status *st)
{
    struct attention_table t = {.rows = json_array(), .workloads = options_workloads(o)};
    int code = -1;
    if (check_options(o, st) == 0)
        code = each_workload(o, "bench", measure, &t, st);
    if (code >= 0 || json_array_size(t.rows) > 0)
        print(&t, o->format);
    json_decref(t.rows);
    return code;
}
