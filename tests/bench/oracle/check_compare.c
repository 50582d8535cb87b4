#include "bench/oracle/oracle.h"
#include "tests/workload.h"

#include <omp.h>

enum { B = 2, H = 3, S = 70, W = 4 };

/* A workload of two sequences, the second of 66 real tokens, and one of its tensors filled with
 * numbers between 1 and 2. */
struct fixture {
    struct workload w;
    int tensor;
    int64_t n;
    float *out;
    double *ref;
};

/* Masked probabilities are 0. */
static bool has_value(int tensor, int64_t index)
{
    return tensor != TENSOR_OF(4) || index % S <= index / S % S;
}

static void allocate(struct fixture *f, struct workload sizes, const char *lengths, int tensor)
{
    f->w = sizes;
    f->w.chain = chain_find("pre");
    f->w.layers = 1;
    f->w.eps = 1e-5;
    workload_ready(&f->w, "causal", lengths, NULL);
    f->tensor = tensor;
    f->n = tensor_elements(tensor, &f->w);
    f->out = mem_alloc((size_t)f->n, sizeof(*f->out));
    f->ref = mem_alloc((size_t)f->n, sizeof(*f->ref));
}

static void prepare(struct fixture *f, int tensor)
{
    const struct workload sizes = {.batch = B, .seq_len = S, .heads = H, .head_size = W};
    allocate(f, sizes, "70,66", tensor);
    for (int64_t i = 0; i < f->n; i++) {
        f->out[i] = has_value(tensor, i) ? 1 + (float)(i * 37 % 1024) / 1024 : 0;
        f->ref[i] = f->out[i];
    }
}

/* What the oracle would have computed; release it. */
static struct oracle_results results_of(const struct workload *w, int tensor, const double *ref)
{
    SCOPED_BY(spans_release) struct spans all = spans_all(w);
    struct oracle_results right;
    oracle_results_init(&right, w, SET_OF(tensor), &all);
    const struct oracle_taker taker = oracle_results_taker(&right);
    int64_t rows = tensor_elements(tensor, w) / tensor_row_columns(w, tensor);
    for (int64_t row = 0; row < rows; row++) {
        int64_t sequence = row / w->seq_len;
        if (tensor_layout(w->chain, tensor) != LAYOUT_TOKENS)
            sequence = sequence / w->heads % w->batch;
        if (right.real[sequence * w->seq_len + row % w->seq_len])
            taker.take(taker.ctx, tensor, (struct rows){row, 1},
                       ref + row * tensor_row_columns(w, tensor));
    }
    return right;
}

/* In pieces of so many rows; 0: in one. */
static struct oracle_error compare_pieces(const struct workload *w, int tensor, const float *out,
                                          const double *ref, int64_t piece)
{
    SCOPED_BY(oracle_results_release) struct oracle_results right = results_of(w, tensor, ref);
    struct comparison c;
    int64_t columns = tensor_row_columns(w, tensor), rows = tensor_elements(tensor, w) / columns;
    comparison_init(&c, &right, tensor);
    for (int64_t first = 0; first<rows; first += piece> 0 ? piece : rows) {
        int64_t left = rows - first;
        struct rows part = {first, piece > 0 && piece < left ? piece : left};
        if (comparison_narrow(&c, &part))
            comparison_add(&c, part, out + part.first * columns);
    }
    return comparison_end(&c);
}

static struct oracle_error compare(const struct fixture *f)
{
    return compare_pieces(&f->w, f->tensor, f->out, f->ref, 0);
}

/* pieces: of how many rows; 0: one. */
static void hash_pieces(const struct workload *w, int tensor, const float *out, int64_t piece,
                        char hash[HASH_TEXT_SIZE])
{
    struct result_hash h;
    int64_t columns = tensor_row_columns(w, tensor), rows = tensor_elements(tensor, w) / columns;
    result_hash_init(&h, w, tensor);
    for (int64_t first = 0, count; first < rows; first += count) {
        int64_t in_sequence = w->seq_len - first % w->seq_len;
        count = piece == 0 ? rows : piece < in_sequence ? piece : in_sequence;
        result_hash_add(&h, (struct rows){first, count}, out + first * columns);
    }
    result_hash_end(&h, hash);
}

static void release(struct fixture *f)
{
    free(f->out);
    free(f->ref);
    workload_release(&f->w);
}

static int64_t columns_of(int tensor)
{
    if (tensor == TENSOR_OF(1) || tensor == TENSOR_OF(5))
        return W;
    if (tensor >= TENSOR_OF(2) && tensor <= TENSOR_OF(4))
        return S;
    return tensor == TENSOR_OF(0)
               ? 3 * H * W
               : tensor_elements(tensor, &(struct workload){.chain = chain_find("pre"),
                                                            .batch = 1,
                                                            .seq_len = 1,
                                                            .heads = H,
                                                            .head_size = W,
                                                            .ffn = 4 * H * W});
}

/* Token and batch row of an element, from the tensor's layout. */
static void place_of(int tensor, int64_t index, int *b, int *i)
{
    int64_t row = index / columns_of(tensor);
    bool heads = tensor >= TENSOR_OF(1) && tensor <= TENSOR_OF(5);
    *i = (int)(row % S);
    *b = (int)(heads ? row / S / H % B : row / S);
}

/* Whether an element counts, told from the layout. */
static bool counts(int tensor, int64_t index)
{
    int b, i, j = (int)(index % columns_of(tensor));
    place_of(tensor, index, &b, &i);
    int length = b == 0 ? S : 66;
    bool masked = (tensor == TENSOR_OF(2) || tensor == TENSOR_OF(3)) && (j > i || j >= length);
    return i < length && !masked;
}

/* One wrong number is found exactly where numbers count, and its row is named; hashes differ. */
TEST_LOOP(wrong_numbers_are_found_where_they_count, 0, TENSOR_COUNT)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY, 1e30f, -7};
    SCOPED_BY(release) struct fixture f;
    prepare(&f, _i);
    char right[HASH_TEXT_SIZE], hash[HASH_TEXT_SIZE];
    int64_t columns = columns_of(_i), step = f.n / 97 + 1;
    struct oracle_error none = compare(&f);
    ck_assert(none.tensor == 0 && none.worst_row == 0 && oracle_accepts(none, 0));
    hash_pieces(&f.w, f.tensor, f.out, 0, right);
    for (int64_t index = 0; index < f.n; index += step)
        for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
            float old = f.out[index];
            f.out[index] = wrong[k];
            struct oracle_error e = compare(&f);
            hash_pieces(&f.w, f.tensor, f.out, 0, hash);
            ck_assert_int_eq(strcmp(hash, right) != 0, counts(_i, index));
            if (!counts(_i, index)) {
                ck_assert(e.tensor == 0 && e.worst_row == 0);
            } else {
                ck_assert_int_eq(e.worst_index, index / columns * columns);
                ck_assert(!oracle_accepts(e, 1e-2));
                ck_assert_int_eq(isinf(e.tensor) && isinf(e.worst_row), !isfinite(wrong[k]));
            }
            f.out[index] = old;
        }
}

TEST(errors_are_relative_norms)
{
    SCOPED_BY(release) struct fixture f;
    prepare(&f, TENSOR_OF(14));
    double squares = 0, row = 0;
    for (int64_t i = 0; i < f.n; i++)
        squares += counts(f.tensor, i) ? f.ref[i] * f.ref[i] : 0;
    for (int c = 0; c < H * W; c++)
        row += f.ref[5 * H * W + c] * f.ref[5 * H * W + c];
    double mean = squares / (S + 66);
    f.out[5 * H * W + 3] += 0.25f;
    f.out[5 * H * W + 4] -= 0.5f;
    struct oracle_error e = compare(&f);
    double difference = sqrt(0.25 * 0.25 + 0.5 * 0.5);
    ck_assert_double_eq_tol(e.tensor, difference / sqrt(squares), 1e-12);
    ck_assert_double_eq_tol(e.worst_row, difference / sqrt(fmax(row, mean)), 1e-12);
    ck_assert_int_eq(e.worst_index, 5 * H * W);
}

/* A score near 0 that cancellation left is judged by the other scores; a row of zeros, which a
 * query without keys has, must be zeros but for that. */
TEST(small_rows_are_judged_by_the_others)
{
    SCOPED_BY(release) struct fixture f;
    prepare(&f, TENSOR_OF(3));
    f.ref[0] = 1e-9; /* the only key of the first query */
    f.out[0] = 3e-9f;
    struct oracle_error e = compare(&f);
    ck_assert(oracle_accepts(e, 1e-5));
    f.out[0] = 1e-3f;
    e = compare(&f);
    ck_assert(!oracle_accepts(e, 1e-5));
    ck_assert_int_eq(e.worst_index, 0);
}

TEST(zeros_must_be_zeros)
{
    SCOPED_BY(release) struct fixture f;
    prepare(&f, TENSOR_OF(5));
    memset(f.ref, 0, (size_t)f.n * sizeof(*f.ref));
    memset(f.out, 0, (size_t)f.n * sizeof(*f.out));
    struct oracle_error e = compare(&f);
    ck_assert(e.tensor == 0 && e.worst_row == 0);
    f.out[7] = 1e-20f;
    e = compare(&f);
    ck_assert(isinf(e.tensor) && isinf(e.worst_row));
}

TEST(rows_may_be_8_times_worse)
{
    ck_assert(oracle_accepts((struct oracle_error){.tensor = 1e-5, .worst_row = 8e-5}, 1e-5));
    ck_assert(!oracle_accepts((struct oracle_error){.tensor = 1.1e-5, .worst_row = 0}, 1e-5));
    ck_assert(!oracle_accepts((struct oracle_error){.tensor = 0, .worst_row = 8.1e-5}, 1e-5));
    ck_assert(!oracle_accepts((struct oracle_error){.tensor = NAN, .worst_row = NAN}, 1));
}

/* _i: the tensor.  Nothing depends on the pieces. */
TEST_LOOP(pieces_are_the_whole, 0, TENSOR_COUNT)
{
    static const int64_t pieces[] = {1, 3, S, 2 * S};
    SCOPED_BY(release) struct fixture f;
    char whole[HASH_TEXT_SIZE], hash[HASH_TEXT_SIZE];
    prepare(&f, _i);
    for (int64_t i = 0; i < f.n; i += 7)
        f.out[i] *= 1.001f;
    struct oracle_error all = compare(&f);
    ck_assert_double_gt(all.tensor, 0);
    hash_pieces(&f.w, f.tensor, f.out, 0, whole);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        struct oracle_error e = compare_pieces(&f.w, f.tensor, f.out, f.ref, pieces[i]);
        ck_assert(e.tensor == all.tensor && e.worst_row == all.worst_row);
        ck_assert_int_eq(e.worst_index, all.worst_index);
    }
    hash_pieces(&f.w, f.tensor, f.out, HASHED_ROWS, hash);
    ck_assert_str_eq(hash, whole);
}

/* A tensor that is large enough for threads. */
TEST(threads_change_no_bit)
{
    SCOPED_BY(release) struct fixture f;
    char one_hash[HASH_TEXT_SIZE], hash[HASH_TEXT_SIZE];
    const struct workload sizes = {.batch = 3, .seq_len = 150, .heads = 8, .head_size = 64};
    allocate(&f, sizes, "150,149,64", TENSOR_X);
    for (int64_t i = 0; i < f.n; i++) {
        f.ref[i] = sin((double)i);
        f.out[i] = (float)(1.001 * f.ref[i]);
    }
    omp_set_num_threads(1);
    struct oracle_error one = compare(&f);
    hash_pieces(&f.w, TENSOR_X, f.out, 0, one_hash);
    ck_assert_double_gt(one.tensor, 0);
    for (int threads = 2; threads < 8; threads++) {
        omp_set_num_threads(threads);
        struct oracle_error e = compare(&f);
        ck_assert(e.tensor == one.tensor && e.worst_row == one.worst_row);
        ck_assert_int_eq(e.worst_index, one.worst_index);
        hash_pieces(&f.w, TENSOR_X, f.out, 0, hash);
        ck_assert_str_eq(hash, one_hash);
    }
}

/* Codes of the right numbers are right, as is one to the other side of a tie; the next one is off
 * by less than a step, NaN by all. */
TEST(codes_are_judged_by_their_cells)
{
    SCOPED_BY(release) struct fixture f;
    prepare(&f, TENSOR_OF(14));
    const float scale = 0x1p-4f;
    const struct rows all = {0, f.n / (H * W)};
    SCOPED uint8_t *codes = mem_alloc((size_t)f.n, 1);
    struct comparison c;
    for (int wrong = 0; wrong < 4; wrong++) {
        f.ref[0] = wrong == 1 ? 1.0625f * scale : 1.125f * scale; /* a tie of 1 and 1.125 */
        for (int64_t i = 0; i < f.n; i++)
            codes[i] = e4m3_pack((float)f.ref[i] / scale);
        if (wrong > 0)
            codes[0] = wrong == 3 ? E4M3_NAN : e4m3_pack(1.125f) + (wrong == 2 ? 1 : 0);
        struct oracle_results right = results_of(&f.w, f.tensor, f.ref);
        comparison_init(&c, &right, f.tensor);
        comparison_add_e4m3(&c, all, codes, scale);
        const struct oracle_error e = comparison_end(&c);
        oracle_results_release(&right);
        ck_assert_int_eq(e.tensor > 0, wrong > 1);
        ck_assert_int_eq(isinf(e.tensor), wrong == 3);
        ck_assert_int_eq(e.worst_index, 0);
    }
}

SUITE("compare", NULL, NULL)
