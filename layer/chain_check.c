#include "layer/layer.h"

/* What the operators of a kind read and leave. */
static const struct {
    enum layout in, out;
    bool keeps_width; /* its output has the input's columns */
    bool skip, qkv;
} kinds[KIND_COUNT] = {
    [KIND_GEMM] = {LAYOUT_TOKENS, LAYOUT_TOKENS, false, false, false},
    [KIND_SPLIT] = {LAYOUT_TOKENS, LAYOUT_QKV_HEADS, true, false, false},
    [KIND_SCORES] = {LAYOUT_QKV_HEADS, LAYOUT_SCORES, false, false, true},
    [KIND_SCORE_MOD] = {LAYOUT_SCORES, LAYOUT_SCORES, true, false, false},
    [KIND_SOFTMAX] = {LAYOUT_SCORES, LAYOUT_SCORES, true, false, false},
    [KIND_CONTEXT] = {LAYOUT_SCORES, LAYOUT_HEADS, false, false, true},
    [KIND_MERGE] = {LAYOUT_HEADS, LAYOUT_TOKENS, true, false, false},
    [KIND_ADD] = {LAYOUT_TOKENS, LAYOUT_TOKENS, true, true, false},
    [KIND_ACTIVATION] = {LAYOUT_TOKENS, LAYOUT_TOKENS, true, false, false},
    [KIND_GATE] = {LAYOUT_TOKENS, LAYOUT_TOKENS, false, false, false},
    [KIND_NORM] = {LAYOUT_TOKENS, LAYOUT_TOKENS, true, false, false},
};

static int wrong(const struct chain *c, int op, const char *what, struct status *st)
{
    return status_set(st, STATUS_USAGE, "chain %s: operator %d, %s, %s", c->name, op,
                      c->ops[op].name, what);
}

/* Whether an operator reads tensor t where its row must have one, and none where not. */
static bool reads_earlier(const struct chain *c, int op, int t, bool must)
{
    if (!must)
        return t == TENSOR_NONE;
    return (t >= 0 && t <= op) || (t == TENSOR_N && chain_has_tensor(c, t));
}

static int check_tensors(const struct chain *c, int op, struct status *st)
{
    const struct op *o = &c->ops[op];
    if (!reads_earlier(c, op, o->input, true) ||
        !reads_earlier(c, op, o->skip, kinds[o->kind].skip) ||
        !reads_earlier(c, op, o->qkv, kinds[o->kind].qkv))
        return wrong(c, op, "does not read what its kind does, of tensors before it", st);
    if (tensor_layout(c, o->input) != kinds[o->kind].in || o->layout != kinds[o->kind].out)
        return wrong(c, op, "has a layout that is not its kind's", st);
    if (o->qkv >= 0 && tensor_layout(c, o->qkv) != LAYOUT_QKV_HEADS)
        return wrong(c, op, "reads q, k and v of a tensor that has none", st);
    if (o->skip >= 0 &&
        (tensor_layout(c, o->skip) != LAYOUT_TOKENS || tensor_columns(c, o->skip) != o->columns))
        return wrong(c, op, "adds rows of another width", st);
    if ((kinds[o->kind].keeps_width && tensor_columns(c, o->input) != o->columns) ||
        (o->kind == KIND_GATE && (tensor_columns(c, o->input) != DIM_2F || o->columns != DIM_F)) ||
        (o->kind == KIND_SPLIT && o->columns != DIM_3D && o->columns != DIM_3A) ||
        (o->kind == KIND_CONTEXT &&
         o->columns != (tensor_columns(c, o->qkv) == DIM_3A ? DIM_A : DIM_D)))
        return wrong(c, op, "has not the width that its kind has", st);
    return 0;
}

/* The width of a weight: a matrix goes from the input's to the output's, a bias has the input's, as
 * it is added first, other vectors have the output's.  A table's is its own. */
static bool has_shape(const struct chain *c, const struct op *o, int role)
{
    const struct weight *w = &c->weights[o->weight[role]];
    enum dim in = tensor_columns(c, o->input);
    return role == ROLE_TABLE ? w->table
                              : w->rows == (role == ROLE_MATRIX ? in : DIM_1) &&
                                    w->cols == (role == ROLE_BIAS ? in : o->columns) && !w->table;
}

static int check_weights(const struct chain *c, int op, uint32_t *read, struct status *st)
{
    const struct op *o = &c->ops[op];
    for (int role = 0; role < ROLE_COUNT; role++) {
        int id = o->weight[role];
        unsigned bit = 1u << role, roles = op_functions[o->function].roles;
        if (id == WEIGHT_NONE && (roles & bit & ~(unsigned)ROLES_OPTIONAL) == 0)
            continue;
        if (id < 0 || id >= WEIGHT_MAX || (roles & bit) == 0)
            return wrong(c, op, "lacks a weight of its function, or has one too many", st);
        if (!has_shape(c, o, role))
            return wrong(c, op, "has a weight of another shape", st);
        if ((*read & SET_OF(id)) != 0)
            return wrong(c, op, "reads a weight that another role has", st);
        *read |= SET_OF(id);
    }
    return 0;
}

/* Each tensor of the next layer comes from one output; *from: these outputs. */
static int check_carried(const struct chain *c, uint32_t *from, struct status *st)
{
    uint32_t to = 0;
    if (c->carried_count < 0 || c->carried_count > CARRIED_MAX)
        return status_set(st, STATUS_USAGE, "chain %s carries %d tensors; it may carry %d", c->name,
                          c->carried_count, CARRIED_MAX);
    for (int i = 0; i < c->carried_count; i++) {
        const struct carried *t = &c->carried[i];
        if (t->from <= TENSOR_X || t->from > TENSOR_Y || (t->to != TENSOR_X && t->to != TENSOR_N) ||
            (to & SET_OF(t->to)) != 0 || tensor_layout(c, t->from) != tensor_layout(c, t->to) ||
            tensor_columns(c, t->from) != tensor_columns(c, t->to))
            return status_set(st, STATUS_USAGE,
                              "chain %s: tensor %d cannot be tensor %d of the next layer", c->name,
                              t->from, t->to);
        *from |= SET_OF(t->from);
        to |= SET_OF(t->to);
    }
    return 0;
}

int chain_check(const struct chain *c, struct status *st)
{
    uint32_t read = 0, used = 0;
    int splits = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        const struct op *o = &c->ops[op];
        if ((unsigned)o->kind >= KIND_COUNT || (unsigned)o->function >= FUNCTION_COUNT ||
            op_functions[o->function].kind != (o->kind == KIND_GATE ? KIND_ACTIVATION : o->kind))
            return wrong(c, op, "computes what is not of its kind", st);
        if (check_tensors(c, op, st) != 0 || check_weights(c, op, &read, st) != 0)
            return -1;
        used |= op_tensors(o);
        splits += o->kind == KIND_SPLIT;
    }
    if (splits != 1)
        return status_set(st, STATUS_USAGE, "chain %s: %d operators split heads; expected one",
                          c->name, splits);
    if (check_carried(c, &used, st) != 0)
        return -1;
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((used & SET_OF(t)) == 0 && chain_has_tensor(c, t))
            return status_set(st, STATUS_USAGE, "chain %s: nothing reads tensor %d, %s", c->name, t,
                              tensor_name(c, t));
    for (int i = 0; i < WEIGHT_MAX; i++)
        if (c->weights[i].name != NULL && (read & SET_OF(i)) == 0)
            return status_set(st, STATUS_USAGE, "chain %s: nothing reads weight %s", c->name,
                              c->weights[i].name);
    return 0;
}
