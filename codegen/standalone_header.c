/* What the header of an exported library says of its layers. */
#include "codegen/codegen_int.h"

void add_family(const struct filling *f, struct buf *out)
{
    buf_adds(out, f->spec->target.chain == &chain_bert ? "a BERT model" : "an encoder");
}

/* "layernorm(x) * gamma1 + beta1" */
static void add_norm(const struct chain *c, const char *of, int number, struct buf *out)
{
    bool rms = chain_functions(c).rms;
    buf_addf(out, "%s(%s) * gamma%d", rms ? "rmsnorm" : "layernorm", of, number);
    if (!rms)
        buf_addf(out, " + beta%d", number);
}

/* The feed-forward network of rows m. */
static void add_ffn(const struct chain *c, const char *m, struct buf *out)
{
    const char *name = op_activation(&c->ops[11]);
    if (chain_functions(c).gate)
        buf_addf(out, "(%s(u) * v) @ w2 + b2", name);
    else
        buf_addf(out, "%s(%s @ w1 + b1) @ w2 + b2", name, m);
}

static void add_gate(const struct chain *c, const char *m, struct buf *out)
{
    if (chain_functions(c).gate)
        buf_addf(out,
                 " *   g   = %s @ w1 + b1                             u: columns 0, 2, ...; v: "
                 "columns 1, 3, ...\n",
                 m);
}

static void add_attention(const struct chain *c, const char *x, struct buf *out)
{
    const struct chain_functions f = chain_functions(c);
    buf_addf(out,
             " *   qkv = %s @ wqkv + bqkv                          columns: q, k, v; in each head "
             "by head\n",
             x);
    if (f.rope)
        buf_adds(out, " *   q, k turned by the place of their token: y_c = x_c cos - x_(c+W/2) "
                      "sin, y_(c+W/2) =\n"
                      " *       x_(c+W/2) cos + x_c sin, for c < W/2, W = head_size\n");
    buf_addf(out, " *   c   = softmax(mask(q k^T / sqrt(head_size)%s)) v\n",
             f.score_bias ? " + score_bias" : "");
}

void add_layer(const struct filling *f, struct buf *out)
{
    const struct chain *c = f->spec->target.chain;
    bool pre = chain_functions(c).pre;
    const char *m = pre ? "m" : "h";
    add_attention(c, pre ? "n" : "x", out);
    buf_adds(out, " *   h   = ");
    if (pre) {
        buf_adds(out, "x + c @ wo + bo\n *   m   = ");
        add_norm(c, "h", 1, out);
    } else
        add_norm(c, "x + c @ wo + bo", 1, out);
    buf_adds(out, "\n");
    add_gate(c, m, out);
    SCOPED_BUF sum = BUF_INIT;
    buf_adds(&sum, "h + ");
    add_ffn(c, m, &sum);
    buf_adds(out, " *   y   = ");
    if (pre) {
        buf_addf(out, "%s\n *   yn  = ", sum.ptr);
        add_norm(c, "y", 2, out);
        buf_adds(out, "; the next layer's n, which is the norm of x by first_gamma in the first");
    } else
        add_norm(c, sum.ptr, 2, out);
    buf_adds(out, "\n");
}

void add_fields(const struct filling *f, struct buf *out)
{
    const struct chain_functions of = chain_functions(f->spec->target.chain);
    if (of.gate)
        buf_adds(out, "  w1 is (D, 2F) and b1 (2F):\n * columns 2c are activated, columns 2c+1 are "
                      "their factors.");
    if (of.rms)
        buf_adds(out, "\n * beta1 and beta2 are not read.");
}
