#include "codegen/codegen_int.h"
#include "tests/candidate.h"
#include "tests/suite.h"

#include <string.h>

enum { LAYERS = 3 };

static struct workload w;

static const struct build_target cpu = {.chain = &chain_bert,
                                        .kind = TARGET_CPU,
                                        .dtype = DTYPE_FP32,
                                        .head_size = 64},
                                 hopper = {.chain = &chain_bert,
                                           .kind = TARGET_CUDA,
                                           .dtype = DTYPE_FP16,
                                           .head_size = 64,
                                           .arch = CUDA_ARCH_HOPPER};

static void placement_of(const struct build_target *t, unsigned value, struct candidate *c,
                         struct placement *p)
{
    candidate_default(t, plan_from_value(value), c);
    placement_find(c, &w, p);
}

/* What memory holds while layers run: for each tensor whether it is still as it was written. */
struct memory {
    const struct placement *places;
    int64_t at[TENSOR_COUNT]; /* of this layer */
    bool whole[TENSOR_COUNT];
};

static bool overlap(const struct memory *m, int a, int b)
{
    return m->at[a] < m->at[b] + tensor_elements(b, &w) &&
           m->at[b] < m->at[a] + tensor_elements(a, &w);
}

static void write_tensor(struct memory *m, int t)
{
    ck_assert_int_ge(m->at[t], 0);
    for (int other = 0; other < TENSOR_COUNT; other++)
        if (other != t && m->at[other] >= 0 && overlap(m, t, other))
            m->whole[other] = false;
    m->whole[t] = true;
}

/* The outputs of the last layer lie behind all places, as do the inputs of the first one. */
static void begin_layer(struct memory *m, int layer)
{
    int64_t before[TENSOR_COUNT], size = tensor_elements(TENSOR_Y, &w);
    memcpy(before, m->at, sizeof(before));
    memcpy(m->at, m->places->at, sizeof(m->at));
    memset(m->whole, 0, sizeof(m->whole));
    for (int i = 0; i < w.chain->carried_count; i++) {
        const int from = w.chain->carried[i].from, to = w.chain->carried[i].to;
        int64_t flow = m->places->at[to], y = m->places->elements + 2 * i * size;
        bool in_turn = flow >= 0 && (LAYERS - 1 - layer) % 2 != 0;
        m->at[to] = layer == 0 ? y + size : before[from];
        m->at[from] = in_turn ? flow : y;
        m->whole[to] = true;
    }
}

/* A segment's results may be written before it has read all of its inputs. */
static void run_segment(struct memory *m, const struct choice *c)
{
    uint32_t in = segment_inputs(w.chain, c->segment), out = choice_tensors(c);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((out >> t & 1) != 0)
            write_tensor(m, t);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (((in | out) >> t & 1) != 0)
            ck_assert_msg(m->whole[t], "segment %d-%d needs tensor %d, which another one overwrote",
                          c->segment.first, c->segment.last, t);
}

static void check_bounds(const struct placement *p)
{
    for (int i = 0; i < w.chain->carried_count; i++)
        ck_assert_int_eq(p->at[w.chain->carried[i].from], -1);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (p->at[t] >= 0) {
            ck_assert_int_eq(p->at[t] % 256, 0);
            ck_assert_int_le(p->at[t] + tensor_elements(t, &w), p->elements);
        }
}

static const struct {
    const struct build_target *target;
    unsigned step; /* between the values that are looked at: choosing a GPU's kernels takes long */
    bool pre;
} targets[] = {{&cpu, 1, false}, {&hopper, 17, false}, {&cpu, 1, true}, {&hopper, 17, true}};

START_TEST(tensors_in_use_at_once_lie_apart)
{
    w.chain = chain_of(
        (struct chain_functions){.pre = targets[_i].pre, .activation = FUNCTION_BIAS_GELU});
    struct build_target target = *targets[_i].target;
    target.chain = w.chain;
    for (unsigned value = 0; value < 1 << 16; value += targets[_i].step) {
        struct candidate c;
        struct placement p;
        if (plan_value(plan_from_value(value)) != value)
            continue; /* the same plan as another value */
        placement_of(&target, value, &c, &p);
        check_bounds(&p);
        struct memory m = {.places = &p};
        for (int layer = 0; layer < LAYERS; layer++) {
            begin_layer(&m, layer);
            for (int i = 0; i < c.count; i++)
                run_segment(&m, &c.choices[i]);
        }
    }
}
END_TEST

/* 48920: 0, 1-6, 7-9, 10-11, 12-14.  The 3072 columns of 11 lie over the 2304 of 0 and the 768 of
 * 6, beside the 768 of 9. */
START_TEST(memory_is_shared)
{
    struct candidate c;
    struct placement p;
    int64_t tokens = (int64_t)w.batch * w.seq_len;
    placement_of(&hopper, 48920, &c, &p);
    ck_assert_int_eq(p.at[TENSOR_OF(0)], 0);
    ck_assert_int_eq(p.at[TENSOR_OF(6)], tokens * 2304);
    ck_assert_int_eq(p.at[TENSOR_OF(9)], tokens * 3072);
    ck_assert_int_eq(p.at[TENSOR_OF(11)], 0);
    ck_assert_int_eq(p.at[TENSOR_X], -1);
    ck_assert_int_eq(p.elements, tokens * 3840);
}
END_TEST

static void setup(void)
{
    struct status st = STATUS_INIT;
    workload_init(&w);
    w.batch = 2;
    w.seq_len = 77;
    OK(workload_check(&w, &st));
}

static void teardown(void)
{
    workload_release(&w);
}

SUITE("placement", setup, teardown, LOOP(tensors_in_use_at_once_lie_apart, 0, ARRAY_LEN(targets)),
      ONCE(memory_is_shared))
