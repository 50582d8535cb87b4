#include "tests/bench/worker/fixture.h"

#include <math.h>

static struct status st; /* of the call that a test is about */

enum { LAYERS = 2 };

static void *memory_of(int layer, int t)
{
    void *memory;
    OK(bank_tensor(&worker.bank, layer, t, &memory, &st));
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* Wherever memory ends, all of it is given back. */
START_TEST(no_memory_is_lost)
{
    for (int at = 1; at <= 3 + LAYERS * WEIGHT_MAX; at++) {
        struct bank b;
        int held = device.held;
        device.allocs = 0;
        device.fails_at = at;
        FAILS(bank_init(&b, &worker.w, &fake_ops, worker.device, worker.bank.inputs, &st),
              STATUS_UNFIT, "");
        bank_release(&b);
        ck_assert_int_eq(device.held, held);
    }
    void *memory;
    device.fails_at = device.allocs + 1;
    ck_assert_int_eq(bank_tensor(&worker.bank, 0, 3, &memory, &st), -1);
    ck_assert_ptr_null(memory);
    ck_assert_uint_eq(bank_held(&worker.bank), 0);
}
END_TEST

/* Copies are worth only memory that nothing else needs. */
START_TEST(copies_give_way)
{
    void *memory = memory_of(0, 7);
    memset(memory, 0, (size_t)tensor_elements(7, &worker.w) * sizeof(float));
    bank_keep(&worker.bank, 0, 7);
    int held = device.held;
    bank_poison(&worker.bank, 0, 1u << 7);
    ck_assert(bank_recall(&worker.bank, 0, 7));
    ck_assert_float_eq(tensor_of(0, 7)[1], 0);
    device.fails_at = device.allocs + 1;
    memory_of(0, 3);
    ck_assert_int_eq(device.held, held); /* one more, and a copy less */
    ck_assert(!bank_recall(&worker.bank, 0, 7));
    ck_assert(!bank_forget(&worker.bank));
}
END_TEST

static const struct {
    int batch, seq_len, heads, head_size, t;
} large[] = {{1, 5, 2, 4, 1},      {16, 1024, 12, 64, 3}, {16, 1024, 12, 64, 15},
             {1, 4096, 12, 64, 3}, {1, 65536, 1, 64, 3},  {3, 9000, 2, 64, 5},
             {8, 2047, 12, 64, 2}, {1, 65536, 1, 64, 0}};

/* Pieces are whole sequences or begin at a multiple of HASHED_ROWS in one, and are no larger than
 * the host has room for. */
START_TEST(pieces_cover_a_tensor)
{
    const struct workload w = {.chain = &chain_bert,
                               .batch = large[_i].batch,
                               .seq_len = large[_i].seq_len,
                               .heads = large[_i].heads,
                               .head_size = large[_i].head_size,
                               .ffn = 4 * large[_i].heads * large[_i].head_size};
    const struct bank b = {.w = &w};
    int t = large[_i].t;
    int64_t columns = tensor_row_columns(&w, t), s = w.seq_len, next = 0;
    for (struct rows rows = {0, 0}; bank_next_rows(&b, t, &rows); next += rows.count) {
        int64_t last = rows.first + rows.count - 1;
        bool whole = rows.first % s == 0 && rows.count % s == 0;
        bool part = rows.first / s == last / s && rows.first % s % HASHED_ROWS == 0;
        ck_assert_int_eq(rows.first, next);
        ck_assert(whole || part);
        ck_assert(rows.count * columns * 4 <= 32 << 20 || rows.count == HASHED_ROWS);
    }
    ck_assert_int_eq(next * columns, tensor_elements(t, &w));
}
END_TEST

static void check_weight(const float *held, int layer, int id)
{
    size_t n = (size_t)weight_elements(id, &worker.w);
    float *drawn = mem_alloc(n, sizeof(*drawn));
    inputs_weight(&worker.w, worker.bank.inputs, layer, id, drawn);
    ck_assert_mem_eq(held, drawn, n * sizeof(*drawn));
    free(drawn);
}

/* A wrong program may write over what it reads: that is filled anew, and nothing else. */
START_TEST(weights_and_x_are_filled_once_and_anew)
{
    void *weight[2];
    const float *x = worker.reference.x[0];
    size_t x_bytes = (size_t)tensor_elements(TENSOR_X, &worker.w) * sizeof(*x);
    for (int layer = 0; layer < 2; layer++) {
        weight[layer] = bank_weight(&worker.bank, layer, WEIGHT_W1);
        check_weight(weight[layer], layer, WEIGHT_W1);
    }
    ck_assert_ptr_eq(bank_weight(&worker.bank, 1, WEIGHT_W1), weight[1]);
    ck_assert_int_eq(device.uploads, 2);
    for (int i = 0; i < 2; i++)
        bank_feed(&worker.bank, 0, x);
    ck_assert_int_eq(device.uploads, 3);

    *(float *)weight[1] = 9;
    memset(memory_of(0, TENSOR_X), 0, x_bytes);
    bank_refill(&worker.bank, x);
    ck_assert_int_eq(device.uploads, 6);
    check_weight(weight[1], 1, WEIGHT_W1);
    ck_assert_mem_eq(memory_of(0, TENSOR_X), x, x_bytes);
}
END_TEST

SUITE("bank", worker_setup, worker_teardown, ONCE(no_memory_is_lost),
      LOOP(pieces_cover_a_tensor, 0, ARRAY_LEN(large)), ONCE(copies_give_way),
      ONCE(weights_and_x_are_filled_once_and_anew))
