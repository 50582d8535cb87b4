/* Uses an exported library as a program of a user does; export.sh builds it with the folder.  The
 * library has one plan, (2,100).  The first argument names the file for the output of seeded
 * inputs; with `direct` as the second one no call replays a graph: see cuda/joined.c. */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 2 };
static const int lengths[] = {77, 30};
static int runs = 4; /* in the same memory */
static bool direct;  /* one run, and each x has an address of its own: no graph is recorded */

/* ---- one call -------------------------------------------------------------------------------- */

struct job {
    const struct encoder *e;
    int batch, seq_len;
    const int *lengths;
    const int *device_lengths; /* in host memory; run() copies them */
    const float *x;
    float *y;  /* the caller frees */
    float *yn; /* likewise; null: not wanted */
    int status;
};

static size_t elements(const struct job *j)
{
    return (size_t)j->batch * (size_t)j->seq_len * (size_t)hidden();
}

/* Real tokens of a sequence, as the library takes them. */
static int length_of(const struct job *j, int sequence)
{
    const int *given = j->lengths != NULL ? j->lengths : j->device_lengths;
    int length = given != NULL ? given[sequence] : j->seq_len;
    return length < 0 ? 0 : length > j->seq_len ? j->seq_len : length;
}

static bool is_real(const struct job *j, size_t element)
{
    int token = (int)(element / (size_t)hidden());
    return token % j->seq_len < length_of(j, token / j->seq_len);
}

/* NaN everywhere. */
static void poison(void *memory, size_t bytes)
{
    void *nans = malloc(bytes);
    memset(nans, 0xff, bytes);
    device_write(memory, nans, bytes);
    free(nans);
}

/* Memory for a job, with its inputs; tensors are NaN, and so are rows of x past a length. */
static struct encoder_call begin(const struct job *j)
{
    size_t bytes = elements(j) * sizeof(float);
    struct encoder_call call = call_new(j->batch, j->seq_len);
    call.lengths = j->lengths;
    call.yn = has(ENCODER_PRE) ? device_new(bytes) : NULL;
    if (j->device_lengths != NULL) {
        int *to = device_new((size_t)j->batch * sizeof(int));
        device_write(to, j->device_lengths, (size_t)j->batch * sizeof(int));
        call.device_lengths = to;
    }
    float *x = malloc(bytes);
    for (size_t i = 0; i < elements(j); i++)
        x[i] = is_real(j, i) ? j->x[i] : NAN;
    device_write((void *)call.x, x, bytes);
    free(x);
    poison(call.workspace, bytes_of_tensors(call.workspace_bytes));
    return call;
}

/* Real rows are finite, the others zeros. */
static bool is_whole(const struct job *j, const float *y)
{
    for (size_t i = 0; i < elements(j); i++)
        if (is_real(j, i) ? !isfinite(y[i]) : y[i] != 0)
            return false;
    return true;
}

static void run_call(struct job *j, const struct encoder_call *call)
{
    poison(call->y, elements(j) * sizeof(float));
    if (call->yn != NULL)
        poison(call->yn, elements(j) * sizeof(float));
    j->status = encoder_run(j->e, call);
    device_read(j->y, call->y, elements(j) * sizeof(float));
    CHECK(j->status != ENCODER_OK || is_whole(j, j->y));
    if (call->yn == NULL || j->status != ENCODER_OK)
        return;
    float *yn = malloc(elements(j) * sizeof(float));
    device_read(yn, call->yn, elements(j) * sizeof(float));
    CHECK(is_whole(j, yn));
    if (j->yn != NULL)
        memcpy(j->yn, yn, elements(j) * sizeof(float));
    free(yn);
}

static void end(struct encoder_call *call)
{
    if (direct)
        call->x = NULL;
    call_delete(call);
}

/* Once more if it ran before. */
static void run(struct job *j)
{
    struct encoder_call call = begin(j);
    free(j->y);
    j->y = malloc(elements(j) * sizeof(float));
    run_call(j, &call);
    end(&call);
}

/* Whether real rows are equal; those of b at row `first_b` of sequences of seq_len_b tokens. */
static bool same(const struct job *a, const struct job *b, const int *real)
{
    size_t row = (size_t)hidden() * sizeof(float);
    for (int s = 0; s < a->batch; s++) {
        size_t from_a = (size_t)s * (size_t)a->seq_len * (size_t)hidden();
        size_t from_b = (size_t)s * (size_t)b->seq_len * (size_t)hidden();
        size_t rows = (size_t)(real != NULL ? real[s] : a->seq_len);
        if (memcmp(a->y + from_a, b->y + from_b, rows * row) != 0)
            return false;
    }
    return true;
}

/* The first sequence, but for rounding: a GEMM of fewer rows may add in another order. */
static bool first_alike(const struct job *a, const struct job *b)
{
    for (int i = 0; i < a->seq_len * hidden(); i++)
        if (!(fabsf(a->y[i] - b->y[i]) <= 1e-5F * (1 + fabsf(b->y[i]))))
            return false;
    return true;
}

/* ---- what is tested -------------------------------------------------------------------------- */

static void test_description(void)
{
    const struct encoder_info *l = encoder_describe();
    CHECK(strncmp(l->generator, "fuseplan ", 9) == 0);
    CHECK(l->plans == 1 && l->dtype == ENCODER_FP32 && l->element_bytes == 4);
    const struct encoder_plan *p = encoder_plan_at(0);
    CHECK(p->batch == BATCH && p->seq_len == SEQ_LEN && strcmp(p->mask, "causal") == 0);
    CHECK(p->measured_on == NULL);
    CHECK(encoder_plan_at(1) == NULL && encoder_plan_at(-1) == NULL);
    CHECK(encoder_find(BATCH, SEQ_LEN) == 0 && encoder_find(1, 7) == 0);
    CHECK(encoder_find(3, 7) == -1 && encoder_find(1, 101) == -1 && encoder_find(0, 1) == -1);
    CHECK(encoder_workspace_bytes(3, 7) == 0);
    for (int status = -1; status < 10; status++)
        CHECK(encoder_status_text(status)[0] != '\0');
}

/* Rows past a length are not read, and written as zeros; a smaller batch is one with lengths in the
 * plan's. */
static void test_lengths(const struct encoder *e)
{
    static const int small[] = {30, 30}, less[] = {20};
    float *x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    struct job all = {.e = e, .batch = BATCH, .seq_len = SEQ_LEN, .x = x}, some = all, few = all;
    run(&all);
    some.lengths = lengths;
    run(&some);
    CHECK(all.status == ENCODER_OK && some.status == ENCODER_OK);
    float *cut = malloc((size_t)(2 * 30 * hidden()) * sizeof(float));
    for (int b = 0; b < 2; b++)
        memcpy(cut + b * 30 * hidden(), x + b * SEQ_LEN * hidden(),
               (size_t)(30 * hidden()) * sizeof(float));
    few.seq_len = 30;
    few.x = cut;
    run(&few);
    some.lengths = small;
    run(&some);
    CHECK(few.status == ENCODER_OK && same(&few, &some, NULL));
    few.batch = 1;
    run(&few);
    CHECK(few.status == ENCODER_OK && first_alike(&few, &some));
    few.lengths = less;
    run(&few);
    CHECK(few.status == ENCODER_OK);
    free(all.y);
    free(some.y);
    free(few.y);
    free(cut);
    free(x);
}

/* On a GPU lengths may lie in its memory; also for a batch smaller than the plan's. */
static void test_device_lengths(const struct encoder *e)
{
    static const int wild[] = {-3, 1000}, few[] = {20, 9};
    float *x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    struct job host = {.e = e, .batch = BATCH, .seq_len = SEQ_LEN, .x = x, .lengths = lengths};
    struct job given = host;
    given.lengths = NULL;
    given.device_lengths = lengths;
    run(&given);
    if (on_cpu()) {
        CHECK(given.status == ENCODER_BAD_ARGUMENT);
        CHECK(said("for CPUs"));
    } else {
        run(&host);
        CHECK(given.status == ENCODER_OK && same(&given, &host, lengths));
        given.device_lengths = wild;
        run(&given);
        CHECK(given.status == ENCODER_OK);
        host.seq_len = given.seq_len = 30;
        host.lengths = given.device_lengths = few;
        run(&host);
        run(&given);
        CHECK(given.status == ENCODER_OK && same(&given, &host, few));
        given.lengths = few;
        run(&given);
        CHECK(given.status == ENCODER_BAD_ARGUMENT);
        free(host.y);
    }
    free(given.y);
    free(x);
}

/* What layers whose norms stand before hand on is the last norm of y. */
static bool is_norm(const float *y, const float *yn)
{
    int n = hidden();
    const float *gamma = drawn[LAYERS - 1][10], *beta = drawn[LAYERS - 1][11];
    double mean = 0, square = 0;
    for (int c = 0; c < n; c++) {
        mean += has(ENCODER_RMS) ? 0 : y[c] / (double)n;
        square += (double)y[c] * y[c] / n;
    }
    for (int c = 0; c < n; c++) {
        double want = (y[c] - mean) / sqrt(square - mean * mean + model.eps) * gamma[c];
        want += has(ENCODER_RMS) ? 0 : beta[c];
        if (!(fabs(yn[c] - want) <= 1e-4))
            return false;
    }
    return true;
}

static void test_norm(const struct encoder *e)
{
    float *x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    struct job j = {.e = e, .batch = BATCH, .seq_len = SEQ_LEN, .x = x};
    struct encoder_call call = begin(&j);
    j.y = malloc(elements(&j) * sizeof(float));
    j.yn = malloc(elements(&j) * sizeof(float));
    for (int padded = 0; padded < 2; padded++) {
        j.lengths = call.lengths = padded != 0 ? lengths : NULL;
        run_call(&j, &call);
        CHECK(j.status == ENCODER_OK);
        for (size_t i = 0; i < elements(&j) && has(ENCODER_PRE); i += (size_t)hidden())
            CHECK(!is_real(&j, i) || is_norm(j.y + i, j.yn + i));
    }
    /* A call that came again goes elsewhere in other memory. */
    void *yn = call.yn;
    for (int i = 0; i < 3; i++)
        run_call(&j, &call);
    if (has(ENCODER_PRE))
        call.yn = device_new(elements(&j) * sizeof(float));
    run_call(&j, &call);
    if (has(ENCODER_PRE))
        device_delete(call.yn);
    /* Without it y is the same; where layers have none it is refused, as is memory of another. */
    struct job without = j;
    call.yn = NULL;
    without.y = malloc(elements(&j) * sizeof(float));
    run_call(&without, &call);
    CHECK(without.status == ENCODER_OK && same(&j, &without, lengths));
    call.yn = has(ENCODER_PRE) ? call.y : call.workspace;
    CHECK(encoder_run(e, &call) == ENCODER_BAD_ARGUMENT &&
          said(has(ENCODER_PRE) ? "output yn" : "no norm"));
    call.yn = yn;
    end(&call);
    free(without.y);
    free(j.y);
    free(j.yn);
    free(x);
}

struct often {
    struct job job;
    const struct job *want;
    int right; /* runs */
};

/* In the same memory, as graphs of calls are recorded and launched again. */
static void *run_often(void *argument)
{
    struct often *o = argument;
    size_t bytes = elements(&o->job) * sizeof(float);
    struct encoder_call call = begin(&o->job);
    o->job.y = malloc(bytes);
    for (int i = 0; i < runs; i++) {
        run_call(&o->job, &call);
        o->right += o->job.status == ENCODER_OK && same(&o->job, o->want, o->job.lengths);
    }
    free(o->job.y);
    end(&call);
    return NULL;
}

/* Two handles of different weights, each in two threads at once, give what each gives alone.  The
 * second one's sequences are padded. */
static void test_threads(const struct encoder *first)
{
    struct encoder *second;
    pthread_t threads[2 * THREADS];
    struct job alone[2];
    struct often often[2 * THREADS];
    float *x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    draw_model(2);
    CHECK(encoder_create(&model, &second) == ENCODER_OK);
    for (int h = 0; h < 2; h++) {
        alone[h] = (struct job){.e = h == 0 ? first : second,
                                .batch = BATCH,
                                .seq_len = SEQ_LEN,
                                .lengths = h == 0 ? NULL : lengths,
                                .x = x};
        run(&alone[h]);
    }
    CHECK(!same(&alone[0], &alone[1], lengths));
    for (int i = 0; i < 2 * THREADS; i++) {
        often[i] = (struct often){.job = alone[i % 2], .want = &alone[i % 2]};
        pthread_create(&threads[i], NULL, run_often, &often[i]);
    }
    for (int i = 0; i < 2 * THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(often[i].right == runs);
    }
    for (int h = 0; h < 2; h++)
        free(alone[h].y);
    free(x);
    encoder_destroy(second);
}

/* The output of seeded inputs, for a comparison of targets. */
static void write_output(const struct encoder *e, const char *path)
{
    FILE *out = fopen(path, "wb");
    srand(7);
    float *x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    for (int padded = 0; padded < 2; padded++) {
        const int *given = padded != 0 ? lengths : NULL;
        struct job j = {.e = e, .batch = BATCH, .seq_len = SEQ_LEN, .lengths = given, .x = x};
        run(&j);
        fwrite(j.y, sizeof(*j.y), elements(&j), out);
        free(j.y);
    }
    free(x);
    fclose(out);
}

int main(int argc, char **argv)
{
    struct encoder *e;
    direct = argc > 2 && strcmp(argv[2], "direct") == 0;
    runs = direct ? 1 : runs;
    test_description();
    draw_model(1);
    int status = encoder_create(&model, &e);
    if (status != ENCODER_OK) {
        printf("%s: %s\n", encoder_status_text(status), encoder_message());
        return EXIT_FAILURE;
    }
    write_output(e, argv[1]);
    test_norm(e);
    test_lengths(e);
    test_device_lengths(e);
    test_threads(e);
    encoder_destroy(e);
    free_model();
    return report();
}
