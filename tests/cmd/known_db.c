/* known_db FILE: writes a database with two workloads of "a processor", for cases whose output must
 * be the same everywhere.  b=1 s=128 causal has plans 43690, 41115 and 36507 timed side by side,
 * and plan 32769, which was only searched; b=2 s=64 with 8 heads has plan 43690, measured long
 * before. */
#include "db/db.h"
#include "layer/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 8 };

/* Segments without a matrix product have one schedule alone. */
static struct db_choice choice_of(int slot)
{
    static const int products[] = {0, 7, 10, 12};
    struct segment s = slot_segment(slot);
    if (slot == SLOT_HANDWRITTEN)
        return (struct db_choice){s, "handwritten", ""};
    bool multiplies = false;
    for (size_t i = 0; i < ARRAY_LEN(products); i++)
        multiplies |= s.first <= products[i] && products[i] <= s.last;
    return (struct db_choice){s, "generated",
                              multiplies ? "lowering=tiled row_block=128 col_block=even"
                                         : "lowering=tiled row_block=256 col_block=even"};
}

static struct db_trial trial(int value, double ms, const char *search)
{
    static struct db_choice choices[OP_COUNT];
    static double samples[SAMPLES];
    int slots[OP_COUNT], n = plan_slots(plan_from_value((unsigned)value), slots);
    for (int i = 0; i < n; i++)
        choices[i] = choice_of(slots[i]);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = ms * (1 + 0.0005 * (2 * i - SAMPLES));
    return (struct db_trial){.kind = DB_TRIAL_PLAN,
                             .value = value,
                             .status = TRIAL_OK,
                             .reason_code = "",
                             .reason = "",
                             .median_ms = ms,
                             .ci_low_ms = ms * 0.99,
                             .ci_high_ms = ms * 1.01,
                             .error = 1e-6,
                             .layers_timed = 12,
                             .choice_count = n,
                             .sample_count = SAMPLES,
                             .choices = choices,
                             .samples_ms = samples,
                             .comparison = "",
                             .resources = "",
                             .conditions = "",
                             .search = search};
}

static int add(struct db *db, int64_t study, enum db_trial_kind kind, int value, double ms,
               const char *search, struct status *st)
{
    struct db_trial t = trial(value, ms, search);
    t.kind = kind;
    t.comparison = kind == DB_TRIAL_FINAL ? search : "";
    return db_trial_add(db, study, &t, st);
}

/* b=2 s=64: a plan that is older than all others, also where all are stored in one millisecond. */
static int add_searched(struct db *db, int64_t study, struct status *st)
{
    struct db_trial t = trial(43690, 50, "");
    t.stored_utc = "2026-01-01T00:00:00.000Z";
    return db_trial_add(db, study, &t, st);
}

/* Every segment alone, in 100 us an operator and 50 us a launch; 14-14 failed. */
static int add_segments(struct db *db, int64_t study, const char *search, struct status *st)
{
    int result = 0;
    for (int i = 0; i < SLOT_COUNT && result == 0; i++) {
        struct segment s = slot_segment(i);
        struct db_choice choice = choice_of(i);
        struct db_trial t = trial(0, 0.05 + 0.1 * (s.last - s.first + 1), search);
        t.kind = DB_TRIAL_SEGMENT;
        t.value = -1;
        t.choices = &choice;
        t.choice_count = 1;
        t.sample_count = 0;
        if (s.first == OP_COUNT - 1) {
            t.status = TRIAL_FAILED;
            t.reason_code = "wrong";
            t.reason = "row 3 is wrong";
            t.median_ms = t.ci_low_ms = t.ci_high_ms = NAN;
        }
        result = db_trial_add(db, study, &t, st);
    }
    return result;
}

/* b=1 s=128 causal: the search was misled, and the comparison says that 41115 is the fastest. */
static int add_compared(struct db *db, int64_t study, struct status *st)
{
    static const struct {
        int value;
        double searched_ms, compared_ms; /* 0: it was not compared */
    } plans[] = {{43690, 120, 118}, {41115, 109, 108}, {36507, 107, 112}, {32769, 108.5, 0}};
    char search[HASH_TEXT_SIZE];
    int result = db_search_start(db, study, "guided", "{\"baselines\":[43690,41115]}", search, st);
    for (size_t i = 0; i < ARRAY_LEN(plans) && result == 0; i++)
        result = add(db, study, DB_TRIAL_PLAN, plans[i].value, plans[i].searched_ms, search, st);
    for (size_t i = 0; i < ARRAY_LEN(plans) && result == 0; i++)
        if (plans[i].compared_ms > 0)
            result =
                add(db, study, DB_TRIAL_FINAL, plans[i].value, plans[i].compared_ms, search, st);
    if (result == 0)
        result = add_segments(db, study, search, st);
    return result == 0 ? db_search_end(db, search, "budget", st) : -1;
}

static int add_study(struct db *db, int batch, int seq_len, int heads, const char *mask,
                     int64_t *study, struct status *st)
{
    static const struct db_target target = {.kind = "cpu",
                                            .device = "a processor",
                                            .uuid = "",
                                            .capability = "avx2",
                                            .driver = "6.1",
                                            .compiler = "gcc 12.2.0",
                                            .libraries = "OpenBLAS",
                                            .units = 2};
    struct workload w;
    struct buf text;
    buf_init(&text);
    workload_init(&w);
    w.batch = batch;
    w.seq_len = seq_len;
    w.heads = heads;
    mask_spec_release(&w.mask_spec);
    int result = mask_parse(mask, &w.mask_spec, st) == 0 ? workload_check(&w, st) : -1;
    if (result == 0) {
        workload_text(&w, &text);
        const struct db_workload row = {.text = text.ptr,
                                        .batch = w.batch,
                                        .seq_len = w.seq_len,
                                        .heads = w.heads,
                                        .head_size = w.head_size,
                                        .ffn = w.ffn,
                                        .layers = w.layers,
                                        .eps = w.eps,
                                        .dtype = "fp32",
                                        .lengths = "full",
                                        .mask = mask,
                                        .init = "uniform"};
        result = db_study(db, &row, &target, "1", study, st);
    }
    workload_release(&w);
    buf_release(&text);
    return result;
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct db *db = NULL;
    int64_t compared, searched;
    int result = argc == 2 ? db_open(argv[1], DB_WRITE, &db, &st)
                           : status_set(&st, STATUS_USAGE, "usage: known_db FILE");
    if (result == 0 &&
        (add_study(db, 1, 128, 12, "causal", &compared, &st) != 0 ||
         add_study(db, 2, 64, 8, "strided:t=8", &searched, &st) != 0 ||
         add_searched(db, searched, &st) != 0 || add_compared(db, compared, &st) != 0))
        result = -1;
    db_close(db);
    if (result != 0)
        fprintf(stderr, "known_db: %s\n", st.message);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
