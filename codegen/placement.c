#include "codegen/codegen_int.h"

enum { ALIGNMENT = 256 }; /* elements, so that every place is aligned to 256 bytes and more */

/* Tensors, and behind them the inputs of GEMMs in e4m3. */
enum { PLACES = TENSOR_COUNT + GEMM_COUNT };

/* The segments that a tensor is in use between, from the one that writes it to its last reader. */
struct life {
    int first, last;
};

/* What a choice reads and writes in memory.  Its result in e4m3 alone is nowhere else, but that of
 * attention, whose parts hand it over to each other. */
static uint32_t tensors_of(const struct choice *c)
{
    const struct chain *chain = c->chain;
    uint32_t read = 0, written = choice_tensors(c);
    struct e4m3_use use;
    choice_e4m3(c, &use);
    for (int op = c->segment.first; op <= c->segment.last; op++) {
        const bool coded = use.in >= 0 && op == chain_gemm(chain, use.in);
        read |= coded ? op_tensors(&chain->ops[op]) & ~SET_OF(chain->ops[op].input)
                      : op_tensors(&chain->ops[op]);
    }
    read &= segment_inputs(chain, c->segment);
    if (use.out >= 0 && !use.both && use.out != GEMM_OUT)
        written &= ~SET_OF(TENSOR_OF(c->segment.last));
    return read | written | (use.in >= 0 ? 1u << (TENSOR_COUNT + use.in) : 0) |
           (use.out >= 0 ? 1u << (TENSOR_COUNT + use.out) : 0);
}

static void find_lives(const struct candidate *c, struct life *lives, uint32_t *used)
{
    *used = 0;
    for (int i = 0; i < c->count; i++) {
        uint32_t now = tensors_of(&c->choices[i]);
        for (int t = 0; t < PLACES; t++) {
            if ((now >> t & 1) == 0)
                continue;
            if ((*used >> t & 1) == 0)
                lives[t].first = i;
            lives[t].last = i;
        }
        *used |= now;
    }
}

/* Elements of a place. */
static int64_t elements_of(int place, const struct workload *w)
{
    if (place < TENSOR_COUNT)
        return tensor_elements(place, w);
    const struct chain *chain = w->chain;
    const int input = chain->ops[chain_gemm(chain, place - TENSOR_COUNT)].input;
    return (tensor_elements(input, w) + 1) / 2;
}

static int64_t room_for(int tensor, const struct workload *w)
{
    return (elements_of(tensor, w) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* A tensor in use at the same time that another one would run into at this place, or -1. */
static int in_the_way(int tensor, int64_t at, const struct life *lives, const struct workload *w,
                      const struct placement *p)
{
    for (int t = 0; t < PLACES; t++)
        if (p->at[t] >= 0 && lives[t].first <= lives[tensor].last &&
            lives[tensor].first <= lives[t].last && at < p->at[t] + room_for(t, w) &&
            p->at[t] < at + room_for(tensor, w))
            return t;
    return -1;
}

static int64_t lowest_place(int tensor, const struct life *lives, const struct workload *w,
                            const struct placement *p)
{
    int64_t at = 0;
    for (int t; (t = in_the_way(tensor, at, lives, w, p)) >= 0;)
        at = p->at[t] + room_for(t, w);
    return at;
}

static int largest_of(uint32_t tensors, const struct workload *w)
{
    int largest = -1;
    for (int t = 0; t < PLACES; t++)
        if ((tensors >> t & 1) != 0 && (largest < 0 || elements_of(t, w) > elements_of(largest, w)))
            largest = t;
    return largest;
}

void placement_find(const struct candidate *c, const struct workload *w, struct placement *out)
{
    struct life lives[PLACES] = {{0, 0}};
    uint32_t left;
    *out = (struct placement){.elements = 0};
    for (int t = 0; t < PLACES; t++)
        out->at[t] = -1;
    find_lives(c, lives, &left);
    lives[TENSOR_COUNT + GEMM_QKV] = (struct life){0, c->count - 1}; /* from layer to layer */
    for (int i = 0; i < w->chain->carried_count; i++) {
        const struct carried *carried = &w->chain->carried[i];
        left &= ~SET_OF(carried->from);
        if (lives[carried->to].last < lives[carried->from].first)
            left &= ~SET_OF(carried->to);
        else
            lives[carried->to] = (struct life){0, c->count - 1};
    }
    while (left != 0) {
        int t = largest_of(left, w);
        left &= ~(1u << t);
        out->at[t] = lowest_place(t, lives, w, out);
        int64_t end = out->at[t] + room_for(t, w);
        out->elements = end > out->elements ? end : out->elements;
    }
}
