/* How many layers the search phase times, and in which pieces results leave the device. */
#include "bench/worker/worker_int.h"
#include "tests/held_clock.h"
#include "tests/workload.h"

#include <sched.h>
#include <sys/socket.h>

#define MIB (1 << 20)

/* fp16 BERT-base: 13.5 MiB of weights a layer; a token takes 9 KiB in x, two flows, q, k and v. */
static const struct {
    int batch, seq_len, layers;
    int64_t cache_bytes;
    int expected;
} cases[] = {
    {1, 128, 12, 0, 2}, /* one layer's output is the next one's input */
    {1, 128, 12, 28 * MIB, 2}, {1, 128, 12, 29 * MIB, 3},    {1, 128, 12, 50 * MIB, 4},
    {1, 128, 12, 60 * MIB, 5}, {8, 512, 12, 60 * MIB, 2}, /* 36 MiB of tensors */
    {8, 512, 12, 64 * MIB, 3}, {8, 512, 12, 1024 * MIB, 12}, {1, 128, 4, 1024 * MIB, 4},
    {1, 128, 1, 0, 1},
};

TEST_LOOP(weights_are_kept_out_of_the_cache, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(workload_release)
    struct workload w = workload_sized(cases[_i].batch, cases[_i].seq_len);
    w.layers = cases[_i].layers;
    w.dtype = DTYPE_FP16;
    OK(mask_parse("full", &w.mask_spec, &st));
    OK(workload_check(&w, &st));
    ck_assert_int_eq(layers_to_time(&w, cases[_i].cache_bytes), cases[_i].expected);
}

static const struct {
    int batch, seq_len, heads, head_size, t;
} large[] = {{1, 5, 2, 4, 1},      {16, 1024, 12, 64, 3}, {16, 1024, 12, 64, 15},
             {1, 4096, 12, 64, 3}, {1, 65536, 1, 64, 3},  {3, 9000, 2, 64, 5},
             {8, 2047, 12, 64, 2}, {1, 65536, 1, 64, 0}};

/* Pieces are whole sequences or begin at a multiple of HASHED_ROWS in one, and are no larger than
 * the host has room for. */
TEST_LOOP(pieces_cover_a_tensor, 0, ARRAY_LEN(large))
{
    const struct workload w = {.chain = &chain_bert,
                               .batch = large[_i].batch,
                               .seq_len = large[_i].seq_len,
                               .heads = large[_i].heads,
                               .head_size = large[_i].head_size,
                               .ffn = 4 * large[_i].heads * large[_i].head_size};
    const struct tensors b = {.w = &w};
    int t = large[_i].t;
    int64_t columns = tensor_row_columns(&w, t), s = w.seq_len, next = 0;
    for (struct rows rows = {0, 0}; tensors_next_rows(&b, t, &rows); next += rows.count) {
        int64_t last = rows.first + rows.count - 1;
        bool whole = rows.first % s == 0 && rows.count % s == 0;
        bool part = rows.first / s == last / s && rows.first % s % HASHED_ROWS == 0;
        ck_assert_int_eq(rows.first, next);
        ck_assert(whole || part);
        ck_assert(rows.count * columns * 4 <= 32 << 20 || rows.count == HASHED_ROWS);
    }
    ck_assert_int_eq(next * columns, tensor_elements(t, &w));
}

/* A GPU's clock is high for a second after any session has used it. */
TEST(a_device_that_was_just_used_is_warm)
{
    const struct device_ops ops = {.undisturbed = true};
    static const struct {
        double idle_s; /* -1: nothing is said */
        bool warm;
    } says[] = {{0, true}, {0.5, true}, {2, false}, {-1, false}};
    clock_await("/nowhere/never");
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        struct worker k = {.ops = &ops, .last_run_s = -10};
        json_auto_t *request = json_object();
        if (says[i].idle_s >= 0)
            json_object_set_new(request, "idle_s", json_real(says[i].idle_s));
        worker_note_use(&k, request);
        ck_assert_int_eq(worker_warm_up(&k).device_s == 0, says[i].warm);
    }
}

static _Atomic int looks;
static const void *seen;

static bool look(struct device *d, const void *memory, int64_t bytes, uint64_t *out)
{
    seen = memory;
    *out = (uint64_t)++looks;
    return true;
}

static int opened;

static void open_library(struct device *d)
{
    (void)d;
    opened++;
}

/* In place of the oracle's thread: ends once the device has been looked at. */
static void *end_once_looked(void *ctx)
{
    struct reference *r = ctx;
    while (looks == 0)
        sched_yield();
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    pthread_cond_signal(&r->end);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* It has nothing to run for as long as the oracle takes, which may be seconds.  Packed inputs have
 * no memory before a program reads them: a segment alone may read others. */
TEST(a_device_is_warm_and_has_its_library_when_the_oracle_has_computed)
{
    const struct device_ops ops = {.undisturbed = true, .hash = look, .open_library = open_library};
    struct worker k = {.ops = &ops, .last_run_s = -10, .w = workload_sized(1, 16)};
    int ends[2];
    OK(mask_parse("full", &k.w.mask_spec, &st));
    OK(workload_check(&k.w, &st));
    OK(workload_build_mask(&k.w, NULL, &st));
    k.tensors = (struct tensors){.w = &k.w, .ops = &ops, .packed = true};
    k.tensors.first[0][TENSOR_X] = &k;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    k.channel = ends[0];
    reference_init(&k.reference, &k.w, k.inputs);
    k.reference.running = true;
    ck_assert_int_eq(pthread_create(&k.reference.thread, NULL, end_once_looked, &k.reference), 0);
    ck_assert(worker_warm_up(&k).device_s > 0);
    worker_need_reference(&k, &k.reference, 1, false);
    ck_assert_int_gt(opened, 0);
    ck_assert_ptr_eq(seen, &k);
    ck_assert_double_eq(worker_warm_up(&k).device_s, 0);
    reference_release(&k.reference);
    workload_release(&k.w);
    close(ends[0]);
    close(ends[1]);
}

SUITE("measure", NULL, NULL)
