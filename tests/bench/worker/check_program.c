#include "tests/bench/worker/fixture.h"

enum { LAYERS = 2 };

static struct program program;

/* Adds the default choice of a segment, with its code at `path`. */
static void add(json_t *candidate, int first, int last, const char *path, const char *verdict)
{
    struct choice c = choice_of(first, last);
    json_t *choice = message_of_choice(&c);
    json_object_set_new(choice, "path", json_string(path));
    if (verdict != NULL)
        json_object_set_new(choice, "verdict", json_string(verdict));
    json_array_append_new(json_object_get(candidate, "choices"), choice);
}

static json_t *candidate_new(bool alone)
{
    return json_pack("{s:b, s:[]}", "alone", alone, "choices");
}

/* Takes the candidate over. */
static int load(json_t *candidate, struct status *st)
{
    int result = program_load(&worker, candidate, LAYERS, &program, st);
    json_decref(candidate);
    return result;
}

static json_t *two_parts(void)
{
    json_t *candidate = candidate_new(false);
    add(candidate, 0, 7, "right a", NULL);
    add(candidate, 8, 14, "right b", "key");
    return candidate;
}

/* Each run says that it took 10 s, so that 20 end within 205 s: one warms up, 18 are samples, and
 * the last one verifies the plan again.  What the suite itself takes is far below 5 s. */
START_TEST(a_limit_leaves_time_to_verify_again)
{
    struct status st = STATUS_INIT;
    const struct sampling how = {.min_samples = 40,
                                 .max_samples = 40,
                                 .max_seconds = 1000,
                                 .limit_s = 205,
                                 .all_layers = true};
    struct trial trial = {0};
    json_t *reply = json_object();
    json_t *request =
        json_pack("{s:o, s:[o]}", "sampling", message_of_sampling(&how), "candidates", two_parts());
    device.run_s = 10;
    ck_assert_msg(worker_measure(&worker, request, reply, &st) == 0, "%s", st.message);
    const json_t *measured = json_array_get(json_object_get(reply, "trials"), 0);
    ck_assert_msg(message_to_trial(measured, &how, &trial, &st) == 0, "%s", st.message);
    ck_assert_msg(trial.status == TRIAL_OK, "%s", trial.reason.message);
    ck_assert_int_eq(trial.sample_count, 18);
    trial_release(&trial);
    json_decref(request);
    json_decref(reply);
}
END_TEST

START_TEST(code_is_loaded_once)
{
    struct status st = STATUS_INIT;
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(load(two_parts(), &st) == 0, "%s", st.message);
        ck_assert_int_eq(device.loads, 2);
        program_release(&worker, &program);
    }
    json_t *other = candidate_new(false);
    add(other, 0, 7, "right a", NULL);
    add(other, 8, 14, "right c", NULL);
    ck_assert_msg(load(other, &st) == 0, "%s", st.message);
    ck_assert_int_eq(device.loads, 3);
    ck_assert_ptr_eq(program.parts[0].function, device.loaded[0]);
    ck_assert_ptr_eq(program.parts[1].function, device.loaded[2]);
    program_release(&worker, &program);
    program_forget(&worker);
    ck_assert_msg(load(two_parts(), &st) == 0, "%s", st.message);
    ck_assert_int_eq(device.loads, 5);
    program_release(&worker, &program);
}
END_TEST

static const struct {
    const char *path, *key, *value; /* key: what is spoilt of the second choice; else null */
    int fails_at;                   /* the allocation that fails; 0: none */
    enum status_code code;
    const char *message;
} bad[] = {
    {"lost", NULL, NULL, 0, STATUS_LAUNCH, "segment 8-14 (generated): cannot load it"},
    {"right", "implementation", "magic", 0, STATUS_LAUNCH, "malformed choice: "},
    {"right", "schedule", "speed=9", 0, STATUS_LAUNCH, "malformed choice: "},
    {"right", "schedule", NULL, 0, STATUS_LAUNCH, "malformed choice"},
    {"right", NULL, NULL, 1, STATUS_UNFIT, "no room"},
};

START_TEST(bad_candidate_is_refused)
{
    struct status st = STATUS_INIT;
    json_t *candidate = candidate_new(false);
    add(candidate, 0, 7, "right a", NULL);
    add(candidate, 8, 14, bad[_i].path, "key");
    json_t *second = json_array_get(json_object_get(candidate, "choices"), 1);
    if (bad[_i].key != NULL && bad[_i].value != NULL)
        json_object_set_new(second, bad[_i].key, json_string(bad[_i].value));
    else if (bad[_i].key != NULL)
        json_object_del(second, bad[_i].key);
    device.fails_at = bad[_i].fails_at != 0 ? device.allocs + bad[_i].fails_at : 0;
    FAILS(load(candidate, &st), bad[_i].code, "");
    ck_assert_msg(strncmp(st.message, bad[_i].message, strlen(bad[_i].message)) == 0, "%s",
                  st.message);
    ck_assert_ptr_null(program.replay);
    program_release(&worker, &program);
}
END_TEST

/* A program has 1 to OP_COUNT choices. */
START_TEST(number_of_choices_is_checked)
{
    static const int counts[] = {0, OP_COUNT + 1, 1000};
    struct status st = STATUS_INIT;
    json_t *candidate = candidate_new(false);
    for (int i = 0; i < counts[_i]; i++)
        add(candidate, 8, 9, "right", NULL);
    FAILS(load(candidate, &st), STATUS_LAUNCH, "choices, expected 1 to 15");
    program_release(&worker, &program);
}
END_TEST

static const float *oracles(int t)
{
    return t == TENSOR_X ? worker.reference.x[0] : worker.reference.layer[0].tensor[t];
}

static void check_fed(int t)
{
    const float *fed = tensor_of(0, t), *right = oracles(t);
    for (int64_t i = 0; i < tensor_elements(t, &worker.w); i++)
        ck_assert_float_eq(fed[i], right[i]);
}

/* From the second time on the device copies what it was fed before.  _i: it has memory for that. */
START_TEST(inputs_are_fed_once)
{
    const int t = TENSOR_OF(7);
    struct status st = STATUS_INIT;
    void *memory;
    worker_need_reference(&worker, 1, false);
    OK(bank_tensor(&worker.bank, 0, t, &memory, &st));
    device.fails_at = _i != 0 ? 0 : device.allocs + 1;
    for (int i = 0; i < 3; i++) {
        program_feed(&worker, (struct segment){8, 9});
        check_fed(t);
        check_fed(TENSOR_X);
        bank_poison(&worker.bank, 0, (uint16_t)(1u << t));
        device.fails_at = _i != 0 ? 0 : device.allocs + 1;
    }
    ck_assert_int_eq(device.uploads, _i != 0 ? 2 : 4);
    ck_assert_int_eq(device.copies, _i != 0 ? 3 : 0);
}
END_TEST

/* A wrong program may have written to the copies. */
START_TEST(inputs_are_fed_anew_after_a_wrong_program)
{
    const int t = TENSOR_OF(7);
    struct status st = STATUS_INIT;
    void *memory;
    worker_need_reference(&worker, 1, false);
    OK(bank_tensor(&worker.bank, 0, t, &memory, &st));
    program_feed(&worker, (struct segment){8, 9});
    memset(worker.bank.kept[0][t], 0, sizeof(float));
    bank_refill(&worker.bank, worker.reference.x[0]);
    program_feed(&worker, (struct segment){8, 9});
    check_fed(t);
}
END_TEST

SUITE("program", worker_setup, worker_teardown, ONCE(code_is_loaded_once),
      LOOP(bad_candidate_is_refused, 0, ARRAY_LEN(bad)), LOOP(number_of_choices_is_checked, 0, 3),
      LOOP(inputs_are_fed_once, 0, 2), ONCE(inputs_are_fed_anew_after_a_wrong_program),
      ONCE(a_limit_leaves_time_to_verify_again))
