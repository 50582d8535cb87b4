/* What a bench without a worker says of itself. */
#include "fake_bench.h"
#include "tests/candidate.h"

const struct fingerprint *bench_fingerprint(const struct bench *b)
{
    static const struct fingerprint f = {.device = "a made-up device",
                                         .uuid = "1",
                                         .capability = "none",
                                         .units = 2,
                                         .driver = "none",
                                         .compiler = "none",
                                         .libraries = "none",
                                         .protocol = "1"};
    return &f;
}

const struct build_target *bench_target(const struct bench *b)
{
    static const struct build_target cpu = {.chain = &chain_bert, .kind = TARGET_CPU};
    static struct build_target hopper = {HOPPER_FP16, .workload = &fake.workload};
    hopper.precision = fake.precision;
    return fake.hopper ? &hopper : &cpu;
}

void bench_limit(struct bench *b, double seconds)
{
    fake.limit_s = seconds;
    fake.limit_end_s = fake.clock_s + seconds;
}

struct disturbance bench_disturbance(const struct bench *b)
{
    return fake.disturbance;
}

const struct workload *bench_workload(const struct bench *b)
{
    return &fake.workload;
}

struct inputs bench_inputs(const struct bench *b)
{
    return fake.inputs;
}
