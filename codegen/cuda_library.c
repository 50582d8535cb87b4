/* Segments that are one call of cuBLASLt: a GEMM with an epilogue. */
#include "codegen/cuda_int.h"

#include <assert.h>

/* Which elementwise operators cuBLASLt can compute in the epilogue of a GEMM.  Its GELU is the tanh
 * form.  For normally distributed x, norm(tanh form - erf form) / norm(erf form) is 2.1e-4 if x has
 * a standard deviation of 0.6 to 0.8, and less otherwise. */
static const struct epilogue {
    bool runs, gelu;
    double error; /* relative norm of its difference from the operator */
} epilogues[POINTWISE_COUNT] = {
    [POINTWISE_NONE] = {.runs = true},
    [POINTWISE_BIAS_RESIDUAL] = {.runs = true},
    [POINTWISE_BIAS_GELU] = {.runs = true, .gelu = true, .error = 2.1e-4},
    [POINTWISE_BIAS_GELU_TANH] = {.runs = true, .gelu = true},
};

/* The epilogue of a segment that is a GEMM with at most one elementwise operator after it; null for
 * any other segment, or if cuBLASLt cannot compute the operator. */
static const struct epilogue *epilogue_of(struct segment s)
{
    const struct epilogue *found = &epilogues[ops[s.last].pointwise];
    bool alone = s.last == s.first;
    bool pair = s.last == s.first + 1 && ops[s.last].anchor == ANCHOR_NONE;
    return ops[s.first].anchor == ANCHOR_GEMM && (alone || pair) && found->runs ? found : NULL;
}

bool cuda_library_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    const struct epilogue *epilogue = epilogue_of(c->segment);
    if (!t->library)
        return inapplicable(why, "cuBLASLt is not available");
    if (epilogue == NULL)
        return inapplicable(
            why, "cuBLASLt runs one GEMM, alone or with bias and residual or bias and GELU");
    return dtypes[t->dtype].tolerance > epilogue->error ||
           inapplicable(why,
                        "cuBLASLt's GELU is the tanh form, which is not exact enough for fp32");
}

void choice_product(const struct choice *c, struct cuda_product *out)
{
    struct segment s = c->segment;
    bool plain = s.first == s.last;
    const struct epilogue *epilogue = epilogue_of(s);
    assert(epilogue != NULL);
    *out = (struct cuda_product){.in = op_input(s.first),
                                 .out = TENSOR_OF(s.last),
                                 .residual = plain ? -1 : op_residual(s.last),
                                 .weight = (int)op_weight(s.first, 0),
                                 .bias = plain ? -1 : (int)op_weight(s.last, 0),
                                 .gelu = epilogue->gelu};
}

void emit_cuda_library(const struct choice *c, const struct build_target *t, struct buf *out)
{
    add_header(c, t, out);
    buf_adds(out, " */\n");
}
