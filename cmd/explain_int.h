/* Shared by the files of `explain`. */
#pragma once

#include "cmd/cmd.h"

/* What is printed beside the explanation itself. */
struct explained {
    struct explanation e;
    const struct workload *workload; /* borrowed */
    enum target_kind target;
    unsigned precision; /* GEMMs in e4m3, as bits */
    bool has_errors;
    struct precision_errors errors; /* of --accuracy */
    const char *device;             /* that the times are of; null: there are none */
    char unstable[UNSTABLE_SIZE];   /* why the plan's time is; "" if it is not */
};

/* Appends "fuse 9 and 10", "cut after 4", "move the cut after 9 to after 10". */
void neighbour_text(const struct neighbour *n, struct buf *out);

/* explain_json.c: one object; CSV has a line for each kernel. */
json_t *explained_json(const struct explained *x);
void explained_csv(const struct explained *x);

/* explain_text.c: the chain as boxes, then the neighbours. */
void explained_print(const struct explained *x);
