#include "codegen/codegen_int.h"

bool choice_equal(const struct choice *a, const struct choice *b)
{
    return a->segment.first == b->segment.first && a->segment.last == b->segment.last &&
           a->impl == b->impl && a->stamped == b->stamped &&
           memcmp(&a->schedule, &b->schedule, sizeof(a->schedule)) == 0;
}

bool same_choices(const struct candidate *a, const struct candidate *b)
{
    bool same = plan_equal(a->plan, b->plan) && a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = choice_equal(&a->choices[i], &b->choices[i]);
    return same;
}

int choice_value(const struct choice *c, int knob)
{
    return c->impl->knobs[knob].values[c->schedule.pick[knob]];
}

int choice_knob(const struct choice *c, const char *knob)
{
    int k = knob_find(c->impl, knob, strlen(knob));
    return k < 0 ? 0 : choice_value(c, k);
}

bool choice_turns(const struct choice *c, int knob)
{
    return c->schedule.pick[knob] != 0;
}

uint32_t choice_tensors(const struct choice *c)
{
    return c->impl->tensors != NULL ? c->impl->tensors(c) : SET_OF(TENSOR_OF(c->segment.last));
}

static bool has_function(const struct impl *impl, const struct op *op)
{
    return (impl->kinds >> op->kind & 1) != 0 &&
           (impl->kernels & op_functions[op->function].kernels) != 0;
}

/* Whether every weight that its function can have is there, or can be left out. */
static bool has_weights(const struct impl *impl, const struct op *op)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (op->weight[role] == WEIGHT_NONE &&
            (op_functions[op->function].roles & ~impl->without & 1u << role) != 0)
            return false;
    return true;
}

/* The operator that computes what a GEMM reads, in this layer or the one before. */
static int writer_of(const struct chain *chain, int gemm)
{
    const int tensor = chain_handed_on_as(chain, chain->ops[chain_gemm(chain, gemm)].input);
    return (int)(tensor_op(chain, tensor) - chain->ops);
}

static bool has_op(struct segment s, int op)
{
    return s.first <= op && op <= s.last;
}

unsigned segment_gemms(const struct chain *chain, struct segment s)
{
    unsigned all = 0;
    for (int g = 0; g < GEMM_COUNT; g++)
        if (has_op(s, chain_gemm(chain, g)) || has_op(s, writer_of(chain, g)))
            all |= 1u << g;
    return all;
}

/* Whether others than a GEMM read a tensor, the next layer's or the caller among them. */
static bool read_beside(const struct chain *chain, int tensor, int gemm)
{
    bool read = (chain_carried(chain) >> tensor & 1) != 0;
    for (int i = 0; i < OP_COUNT; i++)
        read = read ||
               (i != chain_gemm(chain, gemm) && (op_tensors(&chain->ops[i]) >> tensor & 1) != 0);
    return read;
}

bool choice_e4m3(const struct choice *c, struct e4m3_use *out)
{
    const struct chain *chain = c->chain;
    int reads = 0, writes = 0;
    bool to_itself = false;
    *out = (struct e4m3_use){-1, -1, false};
    for (int g = 0; g < GEMM_COUNT; g++) {
        if ((c->schedule.precision >> g & 1) == 0)
            continue;
        if (has_op(c->segment, chain_gemm(chain, g))) {
            out->in = g;
            reads++;
            to_itself = to_itself || has_op(c->segment, writer_of(chain, g));
        } else if (writer_of(chain, g) == c->segment.last) {
            out->out = g;
            out->both = read_beside(chain, TENSOR_OF(c->segment.last), g);
            writes++;
        } else {
            to_itself = true;
        }
    }
    return reads <= 1 && writes <= 1 && !to_itself;
}

struct work segment_work(struct segment s, const struct workload *w, unsigned precision)
{
    const struct chain *chain = w->chain;
    struct work work = {.flops = segment_flops(s, w), .bytes = segment_bytes(s, w)};
    work.paced_flops = work.flops;
    for (int g = 0; g < GEMM_COUNT; g++) {
        if ((precision >> g & 1) == 0)
            continue;
        const int gemm = chain_gemm(chain, g), writer = writer_of(chain, g);
        const struct op *op = &chain->ops[gemm];
        const double half = tensor_bytes(op->input, w) / 2;
        if (has_op(s, gemm)) {
            const struct segment alone = {(int8_t)gemm, (int8_t)gemm};
            work.paced_flops -= segment_flops(alone, w) / 2;
            work.bytes -= weight_bytes(op->weight[ROLE_MATRIX], w) / 2;
            if ((segment_inputs(chain, s) >> op->input & 1) != 0)
                work.bytes -= half;
        }
        if (has_op(s, writer) && (segment_outputs(chain, s) >> TENSOR_OF(writer) & 1) != 0)
            work.bytes += read_beside(chain, TENSOR_OF(writer), g) ? half : -half;
    }
    return work;
}

bool choice_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    if (!c->impl->applicable(c, t, why))
        return false;
    for (int i = c->segment.first; i <= c->segment.last; i++) {
        const struct op *op = &c->chain->ops[i];
        if (!has_function(c->impl, op))
            return inapplicable(why, "it has no kernel of an operator's function");
        if (!has_weights(c->impl, op))
            return inapplicable(why, "its kernel needs a weight that an operator lacks");
    }
    struct e4m3_use use;
    if ((c->schedule.precision & ~c->impl->e4m3) != 0)
        return inapplicable(why, "it has no kernel that reads or writes e4m3");
    if (!choice_e4m3(c, &use))
        return inapplicable(why, "a GEMM in e4m3 reads what another segment has stored");
    return (segment_outputs(c->chain, c->segment) & ~choice_tensors(c)) == 0 ||
           inapplicable(why, "it does not store every tensor that others read");
}

void choice_emit(const struct choice *c, const struct build_target *t, struct buf *out)
{
    const struct kernel_file *file;
    if (c->stamped && !c->impl->library && kernel_group(KERNEL_STAMPS, &file) > 0)
        buf_add(out, file->text, file->len);
    c->impl->emit(c, t, out);
}

double choice_expected_us(const struct choice *c, const struct workload *w)
{
    double us[KINDS_MAX];
    for (int kind = 0; kind < workload_kinds(w); kind++)
        us[kind] =
            c->impl->expected_us != NULL ? c->impl->expected_us(c, workload_of_kind(w, kind)) : NAN;
    return workload_mean(w, us);
}

/* 1.4 times the least, and down to 1.2 times of kernels above 15 us, which the model knows better,
 * and whose losing schedules cost a search most. */
double choice_far_behind_us(double least_us)
{
    return 1.2 * least_us + fmin(0.2 * least_us, 3);
}

void choice_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    c->impl->launch(c, w, out);
}

bool launch_has_maps(const struct cuda_launch *l)
{
    return l->maps[CUDA_MAP_WEIGHT].size[0] > 0 || l->maps[CUDA_MAP_IN].size[0] > 0;
}

void add_e4m3_name(const struct choice *c, struct buf *out)
{
    struct e4m3_use use;
    choice_e4m3(c, &use);
    if (use.in >= 0)
        buf_adds(out, "_of_e4m3");
    if (use.out >= 0)
        buf_adds(out, use.both ? "_and_e4m3" : "_to_e4m3");
}

void choice_symbol(const struct choice *c, struct buf *out)
{
    buf_adds(out, "segment_");
    if (c->impl->add_name != NULL) {
        c->impl->add_name(c, out);
    } else {
        buf_addf(out, "%02d_%02d_", c->segment.first, c->segment.last);
        add_op_names(c->chain, c->segment.first, c->segment.last, "_", out);
    }
    add_e4m3_name(c, out);
    if (strcmp(c->impl->name, "generated") != 0)
        buf_addf(out, "_%s", c->impl->name);
    for (int k = 0; k < c->impl->knob_count; k++) {
        const struct knob *knob = &c->impl->knobs[k];
        if (knob->compile_time && choice_turns(c, k)) {
            int pick = c->schedule.pick[k];
            buf_addf(out, "_%s", knob->labels[pick] != NULL ? "" : knob->name);
            knob_label(knob, pick, out);
        }
    }
}
