/* What all CUDA sources begin with, below their comment. */
#include "codegen/cuda_int.h"

void add_types(const struct build_target *t, struct buf *out)
{
    buf_addf(out, "using dtype = fp::%s;\nenum { W = %d }; /* head size */\n\n",
             dtypes[t->dtype].name, t->head_size);
}

void open_kernel(const struct choice *c, int threads, int resident, int cluster,
                 const char *parameters, struct buf *out)
{
    buf_addf(out, "extern \"C\" __global__ void __launch_bounds__(%d, %d)", threads, resident);
    if (cluster > 1)
        buf_addf(out, " __cluster_dims__(%d, 1, 1)", cluster);
    buf_adds(out, "\n");
    choice_symbol(c, out);
    buf_addf(out,
             "(%sconst __grid_constant__ %s)\n{\n"
             "    extern __shared__ __align__(16) unsigned char shared[];\n"
             "%s    fp::begin_next(a);\n",
             c->stamped ? "fp_stamps *stamps, " : "", parameters,
             c->stamped ? "    const fp::stamped_kernel until_its_end(stamps);\n" : "");
}
