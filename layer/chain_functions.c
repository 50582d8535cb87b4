/* Chains of other functions than BERT's. */
#include "layer/layer.h"

#include <pthread.h>

#define OF(op) TENSOR_OF(op)

static void turn_by_one_norm(struct chain *c)
{
    c->ops[0].input = TENSOR_N;
    c->ops[0].computes = "n @ Wqkv";
    c->ops[13].skip = OF(8);
    c->ops[13].computes = "+ b2, + out_bias_residual's result";
    c->carried[0] = (struct carried){OF(13), TENSOR_X};
    c->carried[1] = (struct carried){OF(14), TENSOR_N};
    c->carried_count = 2;
}

static void use_rms(struct op *op, struct weight weights[WEIGHT_MAX], const char *name,
                    const char *computes)
{
    op->name = name;
    op->computes = computes;
    op->function = FUNCTION_RMSNORM;
    weights[op->weight[ROLE_BETA]] = (struct weight){.name = NULL};
    op->weight[ROLE_BETA] = WEIGHT_NONE;
}

/* The names of its activation's operator. */
struct activation_texts {
    char name[40], computes[64];
};

static void use_activation(struct chain *c, struct chain_functions f, struct activation_texts *t)
{
    struct op *op = &c->ops[11];
    const char *name = op_functions[f.activation].name, *gated = f.gate ? "_gate" : "";
    snprintf(t->name, sizeof(t->name), "ffn1_bias_%s%s", name, gated);
    snprintf(t->computes, sizeof(t->computes), "+ b1, %s%s", name,
             f.gate ? "(even columns) * odd columns" : "");
    op->name = t->name;
    op->computes = t->computes;
    op->function = f.activation;
    if (!f.gate)
        return;
    op->kind = KIND_GATE;
    c->ops[10].columns = c->weights[WEIGHT_W1].cols = c->weights[WEIGHT_B1].cols = DIM_2F;
}

static void use_rope(struct chain *c)
{
    struct op *op = &c->ops[1];
    op->name = "qkv_bias_rope_split";
    op->computes = "+ bqkv, split into q, k, v, each to heads; q, k turned by place";
    op->function = FUNCTION_BIAS_ROPE_SPLIT_HEADS;
    op->weight[ROLE_TABLE] = WEIGHT_ROPE;
    c->weights[WEIGHT_ROPE] = (struct weight){"rope", DIM_S, DIM_W, WEIGHT_ROTATION, true};
}

static void use_score_bias(struct chain *c)
{
    struct op *op = &c->ops[3];
    op->name = "bias_mask";
    op->computes = "+ bias of head and distance, drop the keys that the mask does not keep";
    op->function = FUNCTION_BIAS_MASK;
    op->weight[ROLE_TABLE] = WEIGHT_SCORE_BIAS;
    c->weights[WEIGHT_SCORE_BIAS] =
        (struct weight){"score_bias", DIM_H, DIM_2S_1, WEIGHT_HALF_UNIFORM, true};
}

/* The operators from the first product to the merge of heads have A for D. */
static void use_hidden(struct chain *c)
{
    for (int op = 0; op <= ATTENTION_LAST; op++)
        if (c->ops[op].columns == DIM_D || c->ops[op].columns == DIM_3D)
            c->ops[op].columns = c->ops[op].columns == DIM_D ? DIM_A : DIM_3A;
    c->weights[WEIGHT_WQKV].cols = c->weights[WEIGHT_BQKV].cols = DIM_3A;
    c->weights[WEIGHT_WO].rows = DIM_A;
}

static const struct chain_functions bert_functions = {.activation = FUNCTION_BIAS_GELU};

/* Appends what differs from BERT. */
static void add_name(struct chain_functions f, struct buf *out)
{
    const bool other_activation = f.activation != bert_functions.activation;
    const struct {
        bool has;
        const char *word;
    } words[] = {
        {f.pre, "pre"},      {f.rms, "rms"},   {other_activation, op_functions[f.activation].name},
        {f.gate, "gate"},    {f.rope, "rope"}, {f.score_bias, "bias"},
        {f.hidden, "hidden"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].has)
            buf_addf(out, "%s%s", out->len > 0 ? "+" : "", words[i].word);
}

/* A chain that was asked for. */
struct built {
    struct chain chain;
    struct chain_functions functions;
    struct activation_texts activation;
    struct buf name;
    struct built *next;
};

static void build(struct built *b, struct chain_functions f)
{
    struct chain *c = &b->chain;
    *c = chain_bert;
    b->functions = f;
    add_name(f, &b->name);
    c->name = b->name.ptr;
    if (f.pre)
        turn_by_one_norm(c);
    if (f.rms) {
        use_rms(&c->ops[9], c->weights, "rmsnorm1", "rmsnorm(gamma1)");
        use_rms(&c->ops[14], c->weights, "rmsnorm2", "rmsnorm(gamma2)");
    }
    if (f.gate || f.activation != bert_functions.activation)
        use_activation(c, f, &b->activation);
    if (f.rope)
        use_rope(c);
    if (f.score_bias)
        use_score_bias(c);
    if (f.hidden)
        use_hidden(c);
}

static bool same_functions(struct chain_functions a, struct chain_functions b)
{
    return a.pre == b.pre && a.rms == b.rms && a.activation == b.activation && a.gate == b.gate &&
           a.rope == b.rope && a.score_bias == b.score_bias && a.hidden == b.hidden;
}

static pthread_mutex_t chains_lock = PTHREAD_MUTEX_INITIALIZER;
static struct built *chains; /* all that were asked for; never freed */

const struct chain *chain_of(struct chain_functions f)
{
    if (same_functions(f, bert_functions))
        return &chain_bert;
    pthread_mutex_lock(&chains_lock);
    struct built *b = chains;
    while (b != NULL && !same_functions(b->functions, f))
        b = b->next;
    if (b == NULL) {
        b = mem_alloc(1, sizeof(*b));
        build(b, f);
        b->next = chains;
        chains = b;
    }
    pthread_mutex_unlock(&chains_lock);
    return &b->chain;
}

struct chain_functions chain_functions(const struct chain *c)
{
    return (struct chain_functions){.pre = c->ops[0].input == TENSOR_N,
                                    .rms = c->ops[9].function == FUNCTION_RMSNORM,
                                    .activation = c->ops[11].function,
                                    .gate = c->ops[11].kind == KIND_GATE,
                                    .rope = c->ops[1].function == FUNCTION_BIAS_ROPE_SPLIT_HEADS,
                                    .score_bias = c->ops[3].function == FUNCTION_BIAS_MASK,
                                    .hidden = c->ops[0].columns == DIM_3A};
}

/* Takes `word` off the front of *text, with the '+' behind it. */
static bool take_word(const char **text, const char *word)
{
    size_t len = strlen(word);
    const char *end = *text + len;
    if (strncmp(*text, word, len) != 0 || (*end != '+' && *end != '\0'))
        return false;
    *text = *end == '+' ? end + 1 : end;
    return true;
}

static enum function_id take_activation(const char **text)
{
    for (int id = 0; id < FUNCTION_COUNT; id++)
        if (op_functions[id].kind == KIND_ACTIVATION && take_word(text, op_functions[id].name))
            return (enum function_id)id;
    return bert_functions.activation;
}

const struct chain *chain_find(const char *name)
{
    const char *rest = name;
    struct chain_functions f = {.pre = take_word(&rest, "pre"), .rms = take_word(&rest, "rms")};
    f.activation = take_activation(&rest);
    f.gate = take_word(&rest, "gate");
    f.rope = take_word(&rest, "rope");
    f.score_bias = take_word(&rest, "bias");
    f.hidden = take_word(&rest, "hidden");
    const struct chain *c = strcmp(name, chain_bert.name) == 0 ? &chain_bert
                            : *rest == '\0'                    ? chain_of(f)
                                                               : NULL;
    return c != NULL && strcmp(c->name, name) == 0 ? c : NULL;
}
