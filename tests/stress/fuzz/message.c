/* What a worker says, or a candidate in its place: lines of JSON, each read as a trial, as a
 * status and as an event. */
#include "bench/bench_int.h"
#include "tests/stress/fuzz/fuzz.h"

static void check_trial(const json_t *message)
{
    static const struct sampling how = {.max_samples = 1};
    struct trial t;
    SCOPED_BUF text = BUF_INIT;
    struct status st = STATUS_INIT;
    if (message_to_trial(message, &how, &t, &st) != 0)
        return;
    fuzz_require(t.status == TRIAL_FAILED || t.sample_count > 0, "what was timed has samples");
    for (int i = 0; i < t.sample_count; i++)
        fuzz_require(isfinite(t.samples_ms[i]) && t.samples_ms[i] > 0, "a sample is a time");
    fuzz_require(t.verify_s >= 0 && t.time_s >= 0 && t.error >= 0, "nothing is negative");
    conditions_json(&t.conditions, &text);
    trial_release(&t);
}

/* A bench that has one binary, whose verdict the worker may report. */
static struct bench *bench_once(void)
{
    static struct bench b;
    static struct binary binary = {.error = -1, .verdict = "00112233445566778899aabbccddeeff"};
    static struct binary *list[] = {&binary};
    struct status st = STATUS_INIT;
    if (fuzz_enter_dir()) {
        fuzz_require(cache_open("cache", &b.cache, &st) == 0, "there is a cache");
        b.builder.binaries = list;
        b.builder.count = 1;
        b.candidates = 2;
    }
    return &b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED_BUF received = BUF_INIT;
    json_t *message;
    struct bench *b = bench_once();
    buf_add(&received, data, size);
    while (message_take(&received, &message) > 0) {
        struct status st = STATUS_INIT;
        message_status(message, &st);
        check_trial(message);
        request_event(b, message);
        json_decref(message);
    }
    return 0;
}
