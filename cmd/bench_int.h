/* Shared by the files of `bench`. */
#pragma once

#include "cmd/cmd.h"

/* ---- kernels.c: each kernel of plans, timed alone -------------------------------------------- */

struct kernel {
    struct choice choice;
    struct trial trial;
};

/* All zero: empty. */
struct kernels {
    const struct workload *workload; /* borrowed from the session */
    struct limits limits;            /* the device's peaks */
    struct kernel *items;            /* distinct choices, owned */
    int count;
};

/* Measures and adds the kernels of a candidate that *out lacks; stores their trials under a search,
 * or nothing if that is null. */
int kernels_measure(struct session *s, const struct candidate *c, const char *search,
                    struct kernels *out, struct status *st);
void kernels_release(struct kernels *k);

/* Prints each failed kernel with its reason to stderr. */
void kernels_complain(const struct kernels *k);

/* The kernels of a measured plan in order: times, resources and rates. */
json_t *kernels_json(const struct kernels *k, const struct candidate *c);

/* Prints one table for people: each plan's kernels, then their sum. */
void kernels_print(const struct kernels *k, const struct candidate *const *plans, int n);

/* ---- bench.c, bench_output.c ----------------------------------------------------------------- */

enum { VALUES_MAX = 64, TIMED_MAX = VALUES_MAX + BASELINES_MAX }; /* side by side */

/* The plans timed side by side: those given, then the baselines that were not given. */
struct comparison {
    int given, count; /* plans given; all plans */
    struct baselines baselines;
    char compared_at[CLOCK_UTC_SIZE];
    struct plan plans[TIMED_MAX];
    bool padded[TIMED_MAX];        /* the plan computes rows of padding, where there are lengths */
    unsigned precision[TIMED_MAX]; /* --precision's of plans given; baselines have none in e4m3 */
    struct earlier {
        struct interval ms; /* in the last comparison before this one; NaN: there was none */
        char utc[CLOCK_UTC_SIZE];
        struct interval in_search; /* NaN if unknown */
    } earlier[TIMED_MAX];
    struct candidate candidates[TIMED_MAX];
    struct trial trials[TIMED_MAX];
    bool wants_kernels;
    bool stores;                 /* times of drawn weights, taken as a search takes them */
    struct kernels kernels;      /* of the given plans that ran */
    struct stamps *stamps;       /* (given) owned; null: they are not asked for */
    char search[HASH_TEXT_SIZE]; /* the search under which results are stored */
};

/* Reads the plans of the operands and the baselines. */
int comparison_read(const struct options *o, struct comparison *c, struct status *st);

/* Measures what comparison_read() read, and stores it if it is to be stored.  Close *s in any case.
 */
int comparison_measure(const struct options *o, struct comparison *c, struct session *s,
                       struct status *st);
void comparison_free(struct comparison *c); /* of mem_alloc() */
SCOPED_CLOSE(comparison, comparison_free)

/* ---- bench_output.c: the output -------------------------------------------------------------- */

/* Compares plan i with the baselines; returns their number. */
int comparison_beside(const struct comparison *c, int i, struct baseline_time out[BASELINES_MAX]);

/* Why the time of plan i cannot be relied on; "" if it can. */
void comparison_unstable(const struct comparison *c, int i, char out[UNSTABLE_SIZE]);

/* Index; -1: not there. */
int comparison_find(const struct comparison *c, struct plan p, bool padded, unsigned precision);

/* Whether plan i was given and ran. */
bool comparison_ran(const struct comparison *c, int i);

/* The candidates of the given plans that ran; returns their number. */
int comparison_plans(const struct comparison *c, const struct candidate *out[VALUES_MAX]);

void comparison_print(const struct options *o, const struct comparison *c,
                      const struct workload *w);

/* ---- bench_stamps.c: where the time of a layer goes ------------------------------------------ */

/* Refuses --stamps on a target that has none. */
int stamps_check(const struct options *o, const struct session *s, struct status *st);

json_t *stamps_json(const struct stamps *t, const struct candidate *c, const struct workload *w);

/* A table and a sentence; nothing where there are none. */
void stamps_print(const struct stamps *t, const struct candidate *c, const struct workload *w);

/* ---- bench_attention.c: attention alone ------------------------------------------------------ */

/* bench --op attention, for all batch sizes and sequence lengths. */
int bench_attention(const struct options *o, struct status *st);
