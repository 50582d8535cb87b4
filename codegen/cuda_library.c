/* Segments that are one call of cuBLASLt: a GEMM with an epilogue. */
#include "codegen/cuda_int.h"

#include <assert.h>

/* A GEMM's epilogue of cuBLASLt, where it is more than a bias and a residual.  Its GELU is the tanh
 * form.  For normally distributed x, norm(tanh form - erf form) / norm(erf form) is 2.1e-4 if x has
 * a standard deviation of 0.6 to 0.8, and less otherwise. */
static const struct {
    int activation; /* enum product_epilogue; 0: not in cuBLASLt */
    double error;   /* relative norm of its difference from the operator */
} epilogues[FUNCTION_COUNT] = {
    [FUNCTION_BIAS_GELU] = {PRODUCT_GELU, 2.1e-4},
    [FUNCTION_BIAS_GELU_TANH] = {PRODUCT_GELU, 0},
    [FUNCTION_BIAS_RELU] = {PRODUCT_RELU, 0},
};

/* A GEMM with at most one elementwise operator after it, no activation but those above. */
static bool is_product(const struct choice *c)
{
    struct segment s = c->segment;
    const struct op *first = &c->chain->ops[s.first], *last = &c->chain->ops[s.last];
    bool known = last->kind != KIND_ACTIVATION || epilogues[last->function].activation != 0;
    bool pair = s.last == s.first + 1 && kind_is_pointwise(last->kind) && known;
    return first->kind == KIND_GEMM && (s.last == s.first || pair);
}

static bool e4m3_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    enum { FIRST_ARCH = 89, GROUP = 16 };
    struct cuda_product p;
    choice_product(c, &p);
    if (dtypes[t->dtype].bytes != 2)
        return inapplicable(why, "beside e4m3 it has fp16 and bf16 alone");
    if (t->arch != 0 && t->arch < FIRST_ARCH)
        return inapplicable(why, "cuBLASLt multiplies e4m3 from sm_89 on");
    if (p.out_e4m3 && !p.e4m3)
        return inapplicable(why, "cuBLASLt stores e4m3 where the operands are e4m3 alone");
    const struct weight *weight = &c->chain->weights[p.weight];
    if (t->workload != NULL && (dim_size(weight->rows, t->workload) % GROUP != 0 ||
                                (p.out_e4m3 && dim_size(weight->cols, t->workload) % GROUP != 0)))
        return inapplicable(why, "e4m3 takes rows of a multiple of 16 columns");
    return true;
}

bool cuda_library_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    if (!t->library)
        return inapplicable(why, "cuBLASLt is not available");
    if (!is_product(c))
        return inapplicable(
            why,
            "cuBLASLt runs one GEMM, alone or with bias and residual, or bias and GELU or ReLU");
    if (c->schedule.precision != 0 && !e4m3_applicable(c, t, why))
        return false;
    return dtypes[t->dtype].tolerance > epilogues[c->chain->ops[c->segment.last].function].error ||
           inapplicable(why,
                        "cuBLASLt's GELU is the tanh form, which is not exact enough for fp32");
}

void choice_product(const struct choice *c, struct cuda_product *out)
{
    assert(is_product(c));
    const struct op *first = &c->chain->ops[c->segment.first],
                    *last = &c->chain->ops[c->segment.last];
    *out = (struct cuda_product){.in = first->input,
                                 .out = TENSOR_OF(c->segment.last),
                                 .residual = last->skip,
                                 .weight = first->weight[ROLE_MATRIX],
                                 .bias = last->weight[ROLE_BIAS],
                                 .epilogue = epilogues[last->function].activation};
    struct e4m3_use use;
    choice_e4m3(c, &use);
    out->e4m3 = use.in >= 0;
    out->out_e4m3 = use.out >= 0;
    out->epilogue |= out->bias >= 0 ? PRODUCT_BIAS : 0;
    if (out->epilogue == 0)
        out->epilogue = PRODUCT_PLAIN;
}

void emit_cuda_library(const struct choice *c, const struct build_target *t, struct buf *out)
{
    add_header(c, t, out);
    buf_adds(out, " */\n");
}
