/* db_many FILE TRIALS: writes a database of so many trials, as exhaustive searches of many
 * workloads would: plans, segments, and finals with samples.  Equal arguments give
 * equal results. */
#include "db/db_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SCHEDULES = 3, FINALS = 12, SAMPLES = 24, LO = 32768, HI = 49152 };

static struct status st;

static void require(int result)
{
    if (result == 0)
        return;
    fprintf(stderr, "db_many: %s\n", st.message);
    exit(EXIT_FAILURE);
}

/* One study's trials, as they are made. */
struct maker {
    struct db *db;
    int64_t study, left; /* left: trials to make */
    int number;          /* of the study */
    int64_t tick;        /* of the clock: a trial each */
    struct rng rng;
    char search[HASH_TEXT_SIZE];
    struct {
        struct plan plan;
        double ms;
    } fastest[FINALS]; /* of the study, by rising time */
};

static int64_t make_study(struct maker *m)
{
    static const char *const masks[] = {"causal", "full", "sliding:w=32", "strided:t=64"};
    int batch = 1 << m->number % 4, seq_len = 64 * (1 + m->number / 16);
    const char *mask = masks[m->number / 4 % ARRAY_LEN(masks)];
    struct buf text;
    int64_t study;
    buf_init(&text);
    buf_addf(&text, "b=%d s=%d h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp16 lengths=full mask=%s",
             batch, seq_len, mask);
    struct db_workload w = {text.ptr, batch,  seq_len, 12,   64, 3072,     12,
                            1e-5,     "fp16", "full",  mask, 0,  "uniform"};
    struct db_target t = {.kind = "cuda",
                          .device = "NVIDIA H200",
                          .uuid = "GPU-0",
                          .capability = "sm_90",
                          .driver = "570.86",
                          .compiler = "nvrtc 12.8",
                          .libraries = "cublasLt 12.8",
                          .units = 132};
    require(db_study(m->db, &w, &t, "2", &study, &st));
    require(db_search_start(m->db, study, "exhaustive", "{\"baselines\":[43690,41115]}", m->search,
                            &st));
    buf_release(&text);
    return study;
}

static struct db_choice choice_of(struct segment s, int n)
{
    static const char *const schedules[SCHEDULES] = {
        "tile=128x128x32 stages=4 warps=8", "tile=64x64x64 stages=3 warps=4", "tile=128x256x64"};
    return (struct db_choice){s, n % 2 == 0 ? "generated" : "hopper", schedules[n]};
}

static double store(struct maker *m, struct db_trial t)
{
    char utc[64];
    int64_t second = m->tick++ / 1000;
    snprintf(utc, sizeof(utc), "2026-%02d-%02dT%02d:%02d:%02d.%03dZ",
             (int)(second / 2419200 % 12) + 1, (int)(second / 86400 % 28) + 1,
             (int)(second / 3600 % 24), (int)(second / 60 % 60), (int)(second % 60),
             (int)(m->tick % 1000));
    double ms = 1 + rng_unit(&m->rng);
    t.status = rng_below(&m->rng, 50) == 0 ? TRIAL_FAILED : TRIAL_OK;
    bool ok = t.status == TRIAL_OK;
    t.median_ms = ok ? ms : NAN;
    t.ci_low_ms = ok ? ms * 0.99 : NAN;
    t.ci_high_ms = ok ? ms * 1.01 : NAN;
    t.reason_code = ok ? "" : "launch";
    t.reason = ok ? "" : "too many resources requested for launch";
    t.build_s = rng_unit(&m->rng);
    t.verify_s = rng_unit(&m->rng);
    t.time_s = rng_unit(&m->rng);
    t.error = 1e-3 * rng_unit(&m->rng);
    t.layers_timed = 12;
    t.search = m->search;
    t.stored_utc = utc;
    require(db_trial_insert(m->db, m->study, &t, &st));
    m->left--;
    return ok ? ms : INFINITY;
}

/* Keeps a plan if it is among the fastest of its study. */
static void rank(struct maker *m, struct plan p, double ms)
{
    int at = FINALS;
    for (; at > 0 && ms < m->fastest[at - 1].ms; at--)
        if (at < FINALS)
            m->fastest[at] = m->fastest[at - 1];
    if (at < FINALS) {
        m->fastest[at].plan = p;
        m->fastest[at].ms = ms;
    }
}

static void make_segments(struct maker *m)
{
    for (int slot = 0; slot < SEGMENT_COUNT * SCHEDULES && m->left > 0; slot++) {
        struct db_choice c = choice_of(segment_at(slot / SCHEDULES), slot % SCHEDULES);
        struct db_trial t = {.kind = DB_TRIAL_SEGMENT,
                             .value = -1,
                             .choice_count = 1,
                             .choices = &c,
                             .comparison = "",
                             .sample_count = 6,
                             .resources = "{\"registers\":96,\"shared_dynamic_bytes\":49152}"};
        store(m, t);
    }
}

static void make_plan(struct maker *m, struct plan p, enum db_trial_kind kind)
{
    struct segment segments[OP_COUNT];
    struct db_choice choices[OP_COUNT];
    double samples[SAMPLES];
    int count = plan_segments(p, segments);
    for (int i = 0; i < count; i++)
        choices[i] = choice_of(segments[i], (int)rng_below(&m->rng, SCHEDULES));
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = 1 + rng_unit(&m->rng);
    struct db_trial t = {.kind = kind,
                         .value = (int)plan_value(p),
                         .choice_count = count,
                         .choices = choices,
                         .sample_count = kind == DB_TRIAL_FINAL ? SAMPLES : 6,
                         .samples_ms = samples,
                         .comparison = kind == DB_TRIAL_FINAL ? m->search : ""};
    double ms = store(m, t);
    if (kind == DB_TRIAL_PLAN)
        rank(m, p, ms);
}

int main(int argc, char **argv)
{
    static struct plan space[PLAN_SPACE];
    struct maker m = {.left = argc == 3 ? strtoll(argv[2], NULL, 10) : 0, .rng = {7}};
    if (m.left < 1) {
        fputs("usage: db_many FILE TRIALS\n", stderr);
        return 2;
    }
    require(db_open(argv[1], DB_WRITE, &m.db, &st));
    for (int count = plan_space(LO, HI, space); m.left > 0; m.number++) {
        m.study = make_study(&m);
        for (int i = 0; i < FINALS; i++)
            m.fastest[i].ms = INFINITY;
        require(db_begin_write(m.db, &st));
        make_segments(&m);
        for (int i = 0; i < count && m.left > 0; i++)
            make_plan(&m, space[i], DB_TRIAL_PLAN);
        for (int i = 0; i < FINALS && m.left > 0; i++)
            make_plan(&m, m.fastest[i].plan, DB_TRIAL_FINAL);
        require(db_end(m.db, 0, &st));
        require(db_search_end(m.db, m.search, "space", &st));
    }
    db_close(m.db);
    return EXIT_SUCCESS;
}
