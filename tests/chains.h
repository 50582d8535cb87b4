/* Chains other than BERT's: BERT's without weights that it may lack, and those of families. */
#ifndef FUSEPLAN_TESTS_CHAINS_H
#define FUSEPLAN_TESTS_CHAINS_H

#include "layer/layer.h"

enum test_chain {
    CHAIN_NO_BIAS, /* no operator has a bias */
    CHAIN_NO_BETA, /* no layernorm has a beta */
    CHAIN_PRE,     /* the first family */
    CHAIN_ALL      /* has all functions that BERT has not */
};
static const char *const test_chains[] = {
    [CHAIN_NO_BIAS] = "nobias",
    [CHAIN_NO_BETA] = "nobeta",
    [CHAIN_PRE] = "pre", /* ViT, Whisper */
    [CHAIN_ALL] = "pre+rms+silu+gate+rope+bias+hidden",
    "gelu_tanh+gate+bias",
    "quick_gelu+rope",
    "relu",
};
enum { CHAIN_COUNT = ARRAY_LEN(test_chains) };

/* Takes the weights of a role away. */
static inline void chain_drop(struct chain *c, enum weight_role role)
{
    for (int op = 0; op < OP_COUNT; op++) {
        int gone = c->ops[op].weight[role];
        if (gone != WEIGHT_NONE)
            c->weights[gone] = (struct weight){.name = NULL};
        c->ops[op].weight[role] = WEIGHT_NONE;
    }
}

/* One of them. */
static inline const struct chain *chain_of_test(enum test_chain which)
{
    static struct chain without[CHAIN_PRE];
    if (which >= CHAIN_PRE)
        return chain_find(test_chains[which]);
    if (without[which].name == NULL) {
        without[which] = chain_bert;
        without[which].name = test_chains[which];
        chain_drop(&without[which], which == CHAIN_NO_BIAS ? ROLE_BIAS : ROLE_BETA);
    }
    return &without[which];
}

/* Chains that differ from BERT's in one function, numbered from 0.  Null: there are no more. */
static inline const struct chain *chain_of_one(int i)
{
    static const char *const functions[] = {"pre", "rms", "gate", "rope", "bias", "hidden"};
    if (i < (int)ARRAY_LEN(functions))
        return chain_find(functions[i]);
    const struct op_function *f = &op_functions[FUNCTION_BIAS_GELU + 1 + i - ARRAY_LEN(functions)];
    return f->kind == KIND_ACTIVATION ? chain_find(f->name) : NULL;
}

#endif
