#include "codegen/codegen_int.h"
#include "tests/candidate.h"
#include "tests/workload.h"

enum { LAYERS = 3, PLACES = TENSOR_COUNT + GEMM_COUNT };

static struct workload w;

static const struct build_target cpu = {.chain = &chain_bert,
                                        .kind = TARGET_CPU,
                                        .dtype = DTYPE_FP32,
                                        .head_size = 64},
                                 hopper = {HOPPER_FP16};

static void placement_of(const struct build_target *t, unsigned value, struct candidate *c,
                         struct placement *p)
{
    candidate_default(t, plan_from_value(value), c);
    placement_find(c, &w, p);
}

/* What memory holds while layers run: for each tensor whether it is still as it was written. */
struct memory {
    const struct placement *places;
    int64_t at[PLACES]; /* of this layer */
    bool whole[PLACES];
};

/* Two numbers in e4m3 take the memory of an element. */
static int64_t elements_of(int t)
{
    if (t < TENSOR_COUNT)
        return tensor_elements(t, &w);
    return tensor_elements(w.chain->ops[chain_gemm(w.chain, t - TENSOR_COUNT)].input, &w) / 2;
}

static bool overlap(const struct memory *m, int a, int b)
{
    return m->at[a] < m->at[b] + elements_of(b) && m->at[b] < m->at[a] + elements_of(a);
}

static void write_tensor(struct memory *m, int t)
{
    ck_assert_int_ge(m->at[t], 0);
    for (int other = 0; other < PLACES; other++)
        if (other != t && m->at[other] >= 0 && overlap(m, t, other))
            m->whole[other] = false;
    m->whole[t] = true;
}

/* The outputs of the last layer lie behind all places, as do the inputs of the first one. */
static void begin_layer(struct memory *m, int layer)
{
    int64_t before[PLACES], size = tensor_elements(TENSOR_Y, &w);
    bool rounded = layer == 0 || m->whole[TENSOR_COUNT + GEMM_QKV]; /* x, by the layer before */
    memcpy(before, m->at, sizeof(before));
    memcpy(m->at, m->places->at, sizeof(m->at));
    memset(m->whole, 0, sizeof(m->whole));
    m->whole[TENSOR_COUNT + GEMM_QKV] = rounded;
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
    struct e4m3_use use;
    choice_e4m3(c, &use);
    if (use.in >= 0) {
        const struct op *gemm = &w.chain->ops[chain_gemm(w.chain, use.in)];
        in &= ~SET_OF(gemm->input);
        in |= 1u << (TENSOR_COUNT + use.in);
        for (int op = c->segment.first; op <= c->segment.last; op++)
            if (w.chain->ops[op].skip != TENSOR_NONE)
                in |= SET_OF(w.chain->ops[op].skip) & segment_inputs(w.chain, c->segment);
    }
    if (use.out >= 0) {
        const bool alone = !use.both && use.out != GEMM_OUT;
        out = (alone ? out & ~SET_OF(TENSOR_OF(c->segment.last)) : out) |
              1u << (TENSOR_COUNT + use.out);
    }
    for (int t = 0; t < PLACES; t++)
        if ((out >> t & 1) != 0)
            write_tensor(m, t);
    for (int t = 0; t < PLACES; t++)
        if (((in | out) >> t & 1) != 0)
            ck_assert_msg(m->whole[t], "segment %d-%d needs tensor %d, which another one overwrote",
                          c->segment.first, c->segment.last, t);
}

static void check_bounds(const struct placement *p)
{
    for (int i = 0; i < w.chain->carried_count; i++)
        ck_assert_int_eq(p->at[w.chain->carried[i].from], -1);
    for (int t = 0; t < PLACES; t++)
        if (p->at[t] >= 0) {
            ck_assert_int_eq(p->at[t] % 256, 0);
            ck_assert_int_le(p->at[t] + elements_of(t), p->elements);
        }
}

#ifdef __SANITIZE_ADDRESS__
enum { SHARE = 5 }; /* what is right for all is the release build's to say */
#else
enum { SHARE = 1 };
#endif

static const struct {
    const struct build_target *target;
    unsigned step; /* between the values that are looked at: choosing a GPU's kernels takes long */
    bool pre;
    unsigned precision;
} targets[] = {{&cpu, 1, false, 0},          {&hopper, 17, false, 0},
               {&cpu, 1, true, 0},           {&hopper, 17, true, 0},
               {&hopper, 1, true, GEMM_ALL}, {&hopper, 17, false, 1 << GEMM_QKV | 1 << GEMM_FFN2}};

TEST_LOOP(tensors_in_use_at_once_lie_apart, 0, ARRAY_LEN(targets))
{
    w.chain = chain_of(
        (struct chain_functions){.pre = targets[_i].pre, .activation = FUNCTION_BIAS_GELU});
    struct build_target target = *targets[_i].target;
    int checked = 0;
    target.chain = w.chain;
    target.precision = targets[_i].precision;
    for (unsigned value = 0; value < 1 << 16; value += SHARE * targets[_i].step) {
        struct candidate c;
        struct placement p;
        if (plan_value(plan_from_value(value)) != value)
            continue; /* the same plan as another value */
        if (target.precision != 0 &&
            plan_check(&target, plan_from_value(value), STATUS_IGNORED) != 0)
            continue;
        checked++;
        placement_of(&target, value, &c, &p);
        check_bounds(&p);
        struct memory m = {.places = &p};
        for (int layer = 0; layer < LAYERS; layer++) {
            begin_layer(&m, layer);
            for (int i = 0; i < c.count; i++)
                run_segment(&m, &c.choices[i]);
        }
    }
    ck_assert_int_ge(checked, 1);
}

/* 48920: 0, 1-6, 7-9, 10-11, 12-14.  The 3072 columns of 11 lie over the 2304 of 0 and the 768 of
 * 6, beside the 768 of 9. */
TEST(memory_is_shared)
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

/* In e4m3 the 3072 columns of 11 take the memory of 1536, and no other. */
TEST(e4m3_takes_less)
{
    struct candidate c;
    struct placement p;
    struct build_target target = hopper;
    target.precision = GEMM_ALL;
    placement_of(&target, 48920, &c, &p);
    ck_assert_int_eq(p.at[TENSOR_OF(11)], -1);
    ck_assert_int_ge(p.at[TENSOR_COUNT + GEMM_FFN2], 0);
    ck_assert_int_lt(p.elements, (int64_t)w.batch * w.seq_len * 3900);
}

static void setup(void)
{
    w = workload_sized(2, 77);
    OK(workload_check(&w, &st));
}

static void teardown(void)
{
    workload_release(&w);
}

SUITE("placement", setup, teardown)
