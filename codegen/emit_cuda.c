#include "codegen/cuda_int.h"

static void add_stage_list(const struct cuda_kernel *k, struct buf *out)
{
    buf_adds(out, " *\n * Stages, between which all thread blocks meet:\n");
    for (int i = 0; i < k->count; i++)
        add_stage_line(k->stages[i].chain, i, k->stages[i].first, k->stages[i].last,
                       cuda_stage_summary(&k->stages[i]), out);
    buf_adds(out, " */\n");
}

static void add_includes(const struct cuda_kernel *k, struct buf *out)
{
    if (k->of_kind[STAGE_ATTENTION] > 0)
        buf_adds(out, "#include \"attention.cuh\"\n");
    if (k->of_kind[STAGE_GEMM] > 0)
        buf_adds(out, "#include \"gemm.cuh\"\n");
    if (k->of_kind[STAGE_ROWS] > 0 || k->of_kind[STAGE_ELEMENTWISE] > 0)
        buf_adds(out, "#include \"tokens.cuh\"\n");
    buf_adds(out, "\n");
}

static void add_tile(const struct cuda_kernel *k, struct buf *out)
{
    const struct fp_gemm_tile *t = k->tile;
    if (k->of_kind[STAGE_GEMM] == 0)
        return;
    buf_addf(out,
             "/* tokens, columns, buffers, warps down and across, thread blocks that share a "
             "sum */\n"
             "using tile = fp::gemm_shape<dtype, %d, %d, %d, %d, %d, %d>;\n\n",
             t->bm, t->bn, t->depth, t->warps_m, t->warps_n, k->split);
}

void emit_cuda_generated(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct cuda_kernel k;
    cuda_kernel_of(c, &k);
    add_header(c, t, out);
    add_stage_list(&k, out);
    add_includes(&k, out);
    add_types(t, out);
    add_tile(&k, out);
    for (int i = 0; i < k.count; i++)
        emit_cuda_stage(&k.stages[i], k.threads, out);
    open_kernel(c, k.threads, k.resident, 1, "fp_args a", out);
    if (k.stages[0].kind != STAGE_ROWS) /* which waits by itself */
        buf_adds(out, "    fp::await_dependencies();\n");
    for (int i = 0; i < k.count; i++) {
        buf_adds(out, i > 0 ? "    fp::grid_barrier(a.sync);\n    " : "    ");
        add_stage_name(c->chain, k.stages[i].first, k.stages[i].last, out);
        buf_adds(out, "(a, shared);\n");
    }
    buf_adds(out, "}\n");
}
