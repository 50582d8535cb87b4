#include "bench/wire/wire.h"
#include "tests/suite.h"
#include "tests/workload.h"

#include <sys/socket.h>

static const struct sampling how = {.max_samples = 3};

static json_t *take(struct buf *b, int expected)
{
    json_t *message;
    ck_assert_int_eq(message_take(b, &message), expected);
    return message;
}

TEST(lines_are_taken_whole)
{
    SCOPED_BUF b = BUF_INIT;
    buf_adds(&b, "{\"a\": 1}\n{\"b\"");
    json_t *message = take(&b, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(message, "a")), 1);
    json_decref(message);
    ck_assert_ptr_null(take(&b, 0));
    buf_adds(&b, ": 2}\n");
    message = take(&b, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(message, "b")), 2);
    json_decref(message);
    ck_assert_ptr_null(take(&b, 0));
}

static const char *const garbage[] = {"\n",       "hello\n", "[1]\n", "{\"a\": 1} x\n",
                                      "{\"a\"\n", "7\n"};

TEST_LOOP(garbage_is_refused, 0, ARRAY_LEN(garbage))
{
    SCOPED_BUF b = BUF_INIT;
    buf_adds(&b, garbage[_i]);
    ck_assert_ptr_null(take(&b, -1));
}

TEST(sending_to_nobody_fails)
{
    int ends[2];
    json_auto_t *message = json_pack("{s:i}", "a", 1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert(message_send(ends[0], message));
    close(ends[1]);
    ck_assert(!message_send(ends[0], message)); /* and no signal */
    close(ends[0]);
}

/* What the worker makes of the bits is what the parent has. */
TEST_LOOP(masks_survive_the_journey, 0, 3)
{
    static const char *const masks[] = {"sliding:w=3", "strided", "bigbird"};
    SCOPED_BY(workload_release) struct workload w, back;
    workload_init(&w);
    w.batch = 1;
    w.seq_len = 200;
    workload_ready(&w, masks[_i], NULL, NULL);
    json_auto_t *m = message_of_workload(&w);
    OK(message_to_workload(m, w.mask.bits, &back, &st));
    ck_assert_int_eq(back.blocks.kept, w.blocks.kept);
    ck_assert_int_eq(back.cover.parts, w.cover.parts);
    ck_assert(back.blocks.has_band == w.blocks.has_band && w.blocks.has_band == (_i == 0));
    ck_assert(back.blocks.band[0] == w.blocks.band[0] && back.blocks.band[1] == w.blocks.band[1]);
}

TEST(trial_survives_the_journey)
{
    double samples[] = {3, 1, 2};
    struct trial t = {.status = TRIAL_CENSORED,
                      .samples_ms = samples,
                      .sample_count = 3,
                      .layers_timed = 2,
                      .error = INFINITY,
                      .verify_s = 0.25,
                      .time_s = 0.5},
                 back;
    status_set(&t.reason, STATUS_TIMEOUT, "slow");
    json_auto_t *m = message_of_trial(&t);
    OK(message_to_trial(m, &how, &back, &st));
    ck_assert_int_eq(back.status, TRIAL_CENSORED);
    ck_assert_int_eq(back.reason.code, STATUS_TIMEOUT);
    ck_assert_str_eq(back.reason.message, "slow");
    ck_assert_int_eq(back.sample_count, 3);
    ck_assert_double_eq(back.samples_ms[0], 3);
    ck_assert_double_eq(back.ms.median, 2);
    ck_assert_int_eq(back.layers_timed, 2);
    ck_assert(isinf(back.error));
    ck_assert_double_eq(back.verify_s, 0.25);
    trial_release(&back);
    json_object_del(m, "samples_ms");
    ck_assert_int_eq(message_to_trial(m, &how, &back, &st), -1);
}

static const struct {
    double sample, time_s;
    int layers;
    const char *message;
} lies[] = {{0, 0, 2, "malformed trial: sample 1"},
            {-1, 0, 2, "malformed trial: sample 1"},
            {1e-9, 0, 2, "malformed trial: sample 1"},
            {1, 0, -1, "malformed trial: -1 layers"},
            {1, -1, 1, "malformed trial: 0 s to verify, -1 s"}};

TEST_LOOP(trial_that_cannot_be_is_refused, 0, ARRAY_LEN(lies))
{
    double samples[] = {3, lies[_i].sample, 2};
    struct trial back, t = {.samples_ms = samples,
                            .sample_count = 3,
                            .layers_timed = lies[_i].layers,
                            .time_s = lies[_i].time_s};
    json_auto_t *m = message_of_trial(&t);
    FAILS(message_to_trial(m, &how, &back, &st), STATUS_LAUNCH, lies[_i].message);
    ck_assert_int_eq(back.sample_count, 0);
}

TEST_LOOP(trial_without_the_samples_asked_for_is_refused, TRIAL_OK, TRIAL_FAILED + 1)
{
    struct trial back, t = {.status = (enum trial_status)_i};
    struct sampling verify_only = {.max_samples = 0};
    json_auto_t *m = message_of_trial(&t);
    OK(message_to_trial(m, &verify_only, &back, &st));
    trial_release(&back);
    if (_i == TRIAL_FAILED) {
        OK(message_to_trial(m, &how, &back, &st));
        trial_release(&back);
    } else {
        FAILS(message_to_trial(m, &how, &back, &st), STATUS_LAUNCH, "malformed trial: no sample");
    }
}

SUITE("message", NULL, NULL)
