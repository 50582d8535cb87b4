/* Where the tensors and weights of layers lie, on a device whose memory is the host's. */
#include "bench/worker/worker_int.h"
#include "tests/workload.h"

static int64_t bytes_taken;

static int take(struct device *d, int64_t bytes, void **out, struct status *status)
{
    bytes_taken += bytes;
    *out = mem_alloc((size_t)bytes, 1);
    return 0;
}

static void give(struct device *d, void *memory)
{
    free(memory);
}

static void upload(struct device *d, void *to, enum dtype dtype, const float *from, int64_t n)
{
    elements_pack(dtype, from, n, to);
}

static const struct device_ops host = {.alloc = take, .free = give, .upload = upload};
static const struct inputs inputs = {.seed = 1};
static struct workload w;
static struct tensors tensors;

static void open_with(const char *chain)
{
    w = (struct workload){.chain = chain_find(chain),
                          .batch = 2,
                          .seq_len = 5,
                          .heads = 2,
                          .head_size = 4,
                          .layers = 4,
                          .eps = 1e-5,
                          .dtype = DTYPE_BF16,
                          .rope_theta = 100};
    workload_ready(&w, "causal", NULL, NULL);
    bytes_taken = 0;
    OK(tensors_init(&tensors, &w, &host, NULL, inputs, &st));
}

static void close_all(void)
{
    tensors_release(&tensors);
    workload_release(&w);
}

static void *tensor_of(int layer, int t)
{
    void *out;
    OK(tensors_get(&tensors, layer, t, &out, &st));
    return out;
}

/* _i: whether there is n too.  Each is where the layer before left it and two layers later, and
 * layer 0's is nowhere else. */
TEST_LOOP(layers_read_what_the_one_before_left, 0, 2)
{
    open_with(_i == 0 ? "bert" : "pre");
    const struct chain *c = w.chain;
    ck_assert_int_eq(c->carried_count, _i + 1);
    for (int i = 0; i < c->carried_count; i++) {
        int from = c->carried[i].from, to = c->carried[i].to;
        for (int l = 0; l < w.layers; l++) {
            ck_assert_ptr_ne(tensor_of(l, from), tensor_of(l, to));
            ck_assert_ptr_ne(tensor_of(l, from), tensor_of(0, to));
            ck_assert_ptr_eq(tensor_of(l, from), tensor_of(l + 1, to));
            ck_assert_ptr_eq(tensor_of(l, from), tensor_of(l + 2, from));
            for (int other = 0; other < i; other++)
                ck_assert_ptr_ne(tensor_of(l, from), tensor_of(l, c->carried[other].from));
        }
    }
    ck_assert_ptr_eq(tensor_of(0, TENSOR_OF(8)), tensor_of(1, TENSOR_OF(8)));
}

TEST(tables_are_one_in_fp32)
{
    open_with("bert");
    const int64_t without = bytes_taken;
    close_all();
    open_with("rope+bias");
    ck_assert_int_eq(bytes_taken - without, 4 * (5 * 4 + 2 * 9));
    for (int id = WEIGHT_ROPE; id <= WEIGHT_SCORE_BIAS; id++) {
        float right[20];
        const float *table = tensors_weight(&tensors, 3, id);
        inputs_weight(&w, inputs, 0, id, right);
        ck_assert_ptr_eq(table, tensors_weight(&tensors, 0, id));
        ck_assert_mem_eq(table, right, (size_t)weight_elements(id, &w) * sizeof(*table));
    }
    ck_assert_ptr_ne(tensors_weight(&tensors, 3, WEIGHT_WO),
                     tensors_weight(&tensors, 0, WEIGHT_WO));
}

SUITE("tensors", NULL, close_all)
