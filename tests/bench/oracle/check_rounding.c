/* What plans round: e4m3 operands of each GEMM, and the tensors that are stored. */
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

TEST(scales_are_the_least_powers_of_two)
{
    const struct {
        float amax, most, scale;
    } cases[] = {{448, 448, 1},          {nextafterf(448, 500), 448, 2},
                 {224, 448, 0.5f},       {225, 448, 1},
                 {112, 224, 0.5f},       {113, 224, 1},
                 {7e-3f, 448, 0x1p-15f}, {0, 448, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_float_eq(e4m3_scale(cases[i].amax, cases[i].most), cases[i].scale);
    const float weight[] = {100, -449, 3}; /* its largest value is negative */
    ck_assert_float_eq(e4m3_weight_scale(weight, ARRAY_LEN(weight)), 2);
    ck_assert_float_eq(e4m3_input_scale(0x1p-20f), E4M3_INPUT_LEAST);
    ck_assert_float_eq(e4m3_round(1000, 2), 896); /* saturated */
    ck_assert_float_eq(e4m3_round(17, 2), 16);    /* 8.5 is halfway between 8 and 9 */
}

TEST(weights_are_rounded_by_tensor_or_column)
{
    const float exact[] = {300, 0.001f, -448, 0.0011f};
    float whole[4], columns[4];
    memcpy(whole, exact, sizeof(exact));
    memcpy(columns, exact, sizeof(exact));
    e4m3_round_weight(whole, 2, 2, false);
    e4m3_round_weight(columns, 2, 2, true);
    ck_assert_float_eq(whole[0], 288); /* 300 is nearer to 288 than to 320 */
    ck_assert_float_eq(whole[1], 0x1p-9f);
    ck_assert_float_eq(columns[2], -448);
    for (int i = 1; i < 4; i += 2)
        ck_assert_float_eq_tol(columns[i], exact[i], exact[i] / 16);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static const char *const chains[] = {"bert", "pre", "pre+rms+silu+gate+rope+bias+hidden"};

struct run {
    struct workload w;
    struct layer_inputs in;
    struct rounding rounding;
    struct oracle_layer layer;
};

/* bits: the GEMMs in e4m3, by scales that saturate something.  -1: nothing is rounded. */
static void prepare(struct run *r, const char *chain, int bits)
{
    *r = (struct run){.w = workload_of_195(DTYPE_FP16)};
    r->w.chain = chain_find(chain);
    r->w.hidden = chain_functions(r->w.chain).hidden ? 96 : 0;
    r->w.rope_theta = chain_functions(r->w.chain).rope ? 10000 : 0;
    workload_ready(&r->w, "causal", "65,3,20", NULL);
    r->in = layer_inputs_draw(&r->w, (struct inputs){.seed = 1, .ranges = RANGES_WIDE}, 0);
    r->rounding.dtype = DTYPE_FP16;
    r->rounding.stored = rounding_stored(r->w.chain);
    for (int g = 0; g < GEMM_COUNT && bits >= 0; g++)
        if ((bits >> g & 1) != 0) {
            int id = r->w.chain->ops[chain_gemm(r->w.chain, g)].weight[ROLE_MATRIX];
            const struct weight *shape = &r->w.chain->weights[id];
            e4m3_round_weight(r->in.weight[id], dim_size(shape->rows, &r->w),
                              dim_size(shape->cols, &r->w), false);
            r->rounding.scale[g] = 0x1p-9f; /* 448 becomes 0.875 */
        }
    layer_inputs_round(&r->w, &r->in, bits >= 0 ? &r->rounding : NULL, 1, &r->layer);
}

static void release(struct run *r)
{
    oracle_layer_release(&r->layer);
    layer_inputs_release(&r->in);
    workload_release(&r->w);
}

/* Of the first row: the GEMM's result from its input, rounded here if scale is not 0. */
static double first_element(const struct run *r, int op, float scale)
{
    const struct op *o = &r->w.chain->ops[op];
    const struct weight *shape = &r->w.chain->weights[o->weight[ROLE_MATRIX]];
    int64_t depth = dim_size(shape->rows, &r->w), columns = dim_size(shape->cols, &r->w);
    double sum = 0;
    for (int64_t k = 0; k < depth; k++) {
        double x = r->layer.tensor[o->input][k];
        if (scale > 0) {
            int exponent;
            double value = fabs(x) / scale;
            frexp(value, &exponent);
            double step = ldexp(1, exponent < -5 ? -9 : exponent - 4);
            x = copysign(fmin(nearbyint(value / step) * step, 448), x) * scale;
        }
        sum += x * r->in.weight[o->weight[ROLE_MATRIX]][k * columns];
    }
    return sum;
}

/* _i: a chain and a set of GEMMs.  Each reads the rounded input if its bit is set, and only then,
 * what else reads that input reads it as it is stored. */
TEST_LOOP(gemms_of_a_set_read_e4m3, 0, 16 * ARRAY_LEN(chains))
{
    SCOPED_BY(release) struct run r;
    const int bits = _i % 16;
    prepare(&r, chains[_i / 16], bits);
    for (int g = 0; g < GEMM_COUNT; g++) {
        int op = chain_gemm(r.w.chain, g);
        bool is_set = (bits >> g & 1) != 0;
        double got = r.layer.tensor[TENSOR_OF(op)][0], exact = first_element(&r, op, 0);
        double right = is_set ? first_element(&r, op, 0x1p-9f) : exact;
        ck_assert_double_eq_tol(got, right, 1e-12);
        ck_assert(!is_set || fabs(got - exact) > 1e-6);
        if (is_set) /* a fault: another tensor's scale */
            ck_assert(fabs(got - first_element(&r, op, 0x1p-13f)) > 1e-6);
    }
    const double *skipped = r.layer.tensor[r.w.chain->ops[8].skip];
    const double *sum = r.layer.tensor[TENSOR_OF(8)], *before = r.layer.tensor[TENSOR_OF(7)];
    int bias = r.w.chain->ops[8].weight[ROLE_BIAS];
    double added = before[0] + r.in.weight[bias][0] + skipped[0];
    if ((r.rounding.stored >> TENSOR_OF(8) & 1) != 0)
        added = element_round(DTYPE_FP16, (float)added);
    ck_assert_double_eq_tol(sum[0], added, 1e-12);
}

/* _i: a chain. */
TEST_LOOP(stored_tensors_are_rounded, 0, ARRAY_LEN(chains))
{
    struct run r, exact;
    prepare(&r, chains[_i], 0);
    prepare(&exact, chains[_i], -1);
    const bool pre = chain_functions(r.w.chain).pre;
    uint32_t stored = SET_OF(TENSOR_X) | SET_OF(2) | SET_OF(7) | SET_OF(10) | SET_OF(12) |
                      SET_OF(TENSOR_Y) | (pre ? SET_OF(TENSOR_N) | SET_OF(9) | SET_OF(14) : 0);
    ck_assert_uint_eq(r.rounding.stored, stored);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        bool rounded = true;
        double off = 0, norm = 0;
        for (int64_t i = 0; i < tensor_elements(t, &r.w); i++) {
            double value = r.layer.tensor[t][i], is = exact.layer.tensor[t][i];
            rounded = rounded && value == element_round(DTYPE_FP16, (float)value);
            off += (value - is) * (value - is);
            norm += is * is;
        }
        ck_assert_msg(rounded == (stored >> t & 1) || norm == 0, "tensor %d", t);
        ck_assert_msg(off <= 1e-4 * norm, "tensor %d: %g", t, sqrt(off / norm));
    }
    release(&r);
    release(&exact);
}

SUITE("rounding", NULL, NULL)
