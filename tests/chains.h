/* Chains that are none of the program's: BERT's with a few rows changed, as other families have
 * them. */
#ifndef FUSEPLAN_TESTS_CHAINS_H
#define FUSEPLAN_TESTS_CHAINS_H

#include "layer/layer.h"

#include <stdio.h>

enum test_chain {
    CHAIN_RAW_SKIP, /* operator 13 adds what is normalised in operator 9, not the result */
    CHAIN_NO_BIAS,  /* no operator has a bias */
    CHAIN_NO_BETA,  /* no layernorm has a beta */
    CHAIN_COUNT
};

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

/* One of them, whose operators have names of their own. */
static inline const struct chain *chain_of_test(enum test_chain which)
{
    static const char *const names[] = {
        [CHAIN_RAW_SKIP] = "raw", [CHAIN_NO_BIAS] = "nobias", [CHAIN_NO_BETA] = "nobeta"};
    static struct chain chains[CHAIN_COUNT];
    static char op_names[CHAIN_COUNT][OP_COUNT][48];
    struct chain *c = &chains[which];
    if (c->name != NULL)
        return c;
    *c = chain_bert;
    c->name = names[which];
    for (int op = 0; op < OP_COUNT; op++) {
        snprintf(op_names[which][op], sizeof(op_names[which][op]), "%s_%s", names[which],
                 chain_bert.ops[op].name);
        c->ops[op].name = op_names[which][op];
    }
    if (which == CHAIN_RAW_SKIP)
        c->ops[13].skip = TENSOR_OF(8);
    if (which == CHAIN_NO_BIAS)
        chain_drop(c, ROLE_BIAS);
    if (which == CHAIN_NO_BETA)
        chain_drop(c, ROLE_BETA);
    return c;
}

#endif
