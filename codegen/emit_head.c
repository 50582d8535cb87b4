/* Names of stages, and the comment at the top of every emitted source. */
#include "codegen/codegen_int.h"

void add_stage_name(const struct chain *c, int first, int last, struct buf *out)
{
    buf_addf(out, "stage_%02d_%02d_", first, last);
    add_op_names(c, first, last, "_", out);
}

void add_stage_line(const struct chain *c, int index, int first, int last, const char *summary,
                    struct buf *out)
{
    buf_addf(out, " *   %d. ", index + 1);
    add_op_names(c, first, last, "+", out);
    buf_addf(out, ": %s\n", summary);
}

const char *attention_name(const struct op *op)
{
    return op->kind == KIND_MERGE   ? "FP_MERGE"
           : op->kind == KIND_SPLIT ? "FP_SPLIT"
                                    : op_functions[op->function].cpu;
}

int attention_qkv(const struct chain *c, int first, int last)
{
    int op = first;
    while (op < last && c->ops[op].qkv == TENSOR_NONE)
        op++;
    return c->ops[op].qkv;
}

/* ---- the comment at the top ------------------------------------------------------------------ */

static void add_flops(const struct chain *c, const struct op *op, struct buf *out)
{
    if (op->kind == KIND_GEMM) {
        const struct weight *w = &c->weights[op->weight[ROLE_MATRIX]];
        buf_addf(out, "  [2 T %s %s]", dim_names[w->rows], dim_names[w->cols]);
    } else if (op->kind == KIND_SCORES || op->kind == KIND_CONTEXT) {
        buf_addf(out, "  [2 P %s]", chain_functions(c).hidden ? "A" : "D");
    }
}

static void add_operators(const struct chain *c, struct segment s, struct buf *out)
{
    for (int op = s.first; op <= s.last; op++) {
        buf_addf(out, " *   %2d %-18s %s", op, c->ops[op].name, c->ops[op].computes);
        add_flops(c, &c->ops[op], out);
        buf_adds(out, "\n");
    }
}

/* A list with commas, wrapped into lines of at most COLUMNS. */
struct list {
    struct buf *out;
    size_t line; /* where the line begins in out */
    int count;
};

static struct list open_list(const char *what, struct buf *out)
{
    struct list list = {.out = out, .line = out->len};
    buf_addf(out, " * %s", what);
    return list;
}

static void add_item(struct list *list, const char *name, const char *shape)
{
    enum { COLUMNS = 100 };
    size_t len = strlen(", ") + strlen(name) + strlen(" ") + strlen(shape);
    bool wraps = list->out->len + len - list->line >= COLUMNS;
    buf_addf(list->out, "%s%s", list->count++ > 0 ? "," : "", wraps ? "\n" : "");
    if (wraps)
        list->line = list->out->len;
    buf_addf(list->out, "%s%s %s", wraps ? " *   " : " ", name, shape);
}

static void add_tensors(const struct chain *c, const char *verb, uint32_t tensors, struct buf *out)
{
    struct list list = open_list(verb, out);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((tensors >> t & 1) != 0)
            add_item(&list, tensor_name(c, t), tensor_shape_text(c, t));
    buf_adds(out, "\n");
}

static void add_weights(const struct chain *c, struct segment s, struct buf *out)
{
    uint32_t used = segment_weights(c, s);
    if (used == 0)
        return;
    struct list list = open_list("Weights", out);
    for (int w = 0; w < WEIGHT_MAX; w++)
        if ((used >> w & 1) != 0) {
            char shape[16];
            snprintf(shape, sizeof(shape), "(%s,%s)", dim_names[c->weights[w].rows],
                     dim_names[c->weights[w].cols]);
            add_item(&list, c->weights[w].name, shape);
        }
    buf_adds(out, "\n");
}

/* The value whose plan fuses this segment and nothing else. */
static unsigned value_of(struct segment s, bool handwritten)
{
    unsigned fused = (1u << s.last) - (1u << s.first);
    return plan_value(plan_of((uint16_t)fused, handwritten));
}

/* Operators with their operations, tensors, weights. */
static void add_segment(const struct choice *of, struct buf *out)
{
    const struct chain *c = of->chain;
    add_operators(c, of->segment, out);
    buf_adds(out, " *\n");
    add_tensors(c, "Reads", segment_inputs(c, of->segment), out);
    add_weights(c, of->segment, out);
    add_tensors(c, "Writes", choice_tensors(of), out);
}

static void add_units(const struct build_target *t, struct buf *out)
{
    buf_addf(out,
             " * %s bytes an element; operations in brackets, T real tokens, P kept (query, key) "
             "pairs.\n",
             dtypes[t->dtype].bytes == 2 ? "Two" : "Four");
}

static void add_precision(const struct choice *c, struct buf *out)
{
    struct e4m3_use use;
    choice_e4m3(c, &use);
    if (use.in >= 0)
        buf_adds(out, " * The GEMM's input and weight are e4m3, one byte an element.\n");
    if (use.out >= 0)
        buf_addf(out, " * The result is stored in e4m3, one byte an element%s.\n",
                 use.both ? ", too" : "");
}

void add_header(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct segment s = c->segment;
    buf_addf(out, "/* Operators %d-%d of the layer in one ", s.first, s.last);
    if (c->impl->library)
        buf_adds(out, "call of cuBLASLt.\n *\n");
    else
        buf_addf(out, "launch, as `fuseplan generate %u` emits them.\n *\n",
                 value_of(s, c->impl->handwritten));
    add_segment(c, out);
    add_units(t, out);
    add_precision(c, out);
}

void add_shared_header(const struct choice *c, const struct segment *segments, int count,
                       const struct build_target *t, struct buf *out)
{
    buf_adds(out,
             "/* A GEMM and the operators around it in one launch.  Its operands, fp_args.gemm, "
             "are those of:\n");
    for (int i = 0; i < count; i++) {
        struct choice of = *c;
        of.segment = segments[i];
        buf_addf(out,
                 " *\n * Operators %d-%d of the layer, as `fuseplan generate %u` emits them.\n",
                 of.segment.first, of.segment.last, value_of(of.segment, false));
        add_segment(&of, out);
    }
    buf_adds(out, " *\n");
    add_units(t, out);
    add_precision(c, out);
}
