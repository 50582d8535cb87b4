#include "codegen/codegen_int.h"

enum { ALIGNMENT = 256 }; /* elements, so that every place is aligned to 256 bytes and more */

/* The segments that a tensor is in use between, from the one that writes it to its last reader. */
struct life {
    int first, last;
};

static void find_lives(const struct candidate *c, struct life *lives, uint32_t *used)
{
    *used = 0;
    for (int i = 0; i < c->count; i++) {
        const struct choice *choice = &c->choices[i];
        uint32_t now = choice_tensors(choice) | segment_inputs(choice->chain, choice->segment);
        for (int t = 0; t < TENSOR_COUNT; t++) {
            if ((now >> t & 1) == 0)
                continue;
            if ((*used >> t & 1) == 0)
                lives[t].first = i;
            lives[t].last = i;
        }
        *used |= now;
    }
}

static int64_t room_for(int tensor, const struct workload *w)
{
    return (tensor_elements(tensor, w) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* A tensor in use at the same time that another one would run into at this place, or -1. */
static int in_the_way(int tensor, int64_t at, const struct life *lives, const struct workload *w,
                      const struct placement *p)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
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
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((tensors >> t & 1) != 0 &&
            (largest < 0 || tensor_elements(t, w) > tensor_elements(largest, w)))
            largest = t;
    return largest;
}

void placement_find(const struct candidate *c, const struct workload *w, struct placement *out)
{
    struct life lives[TENSOR_COUNT];
    uint32_t left;
    *out = (struct placement){.elements = 0};
    for (int t = 0; t < TENSOR_COUNT; t++)
        out->at[t] = -1;
    find_lives(c, lives, &left);
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
