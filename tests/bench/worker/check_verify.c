#include "tests/bench/worker/fixture.h"

static struct status st; /* of the call that a test is about */

enum { PARTS = 3, LAYERS = 2 };

static const struct segment segments[PARTS] = {{0, 1}, {2, 6}, {7, 14}};
static const char *const names[PARTS] = {"segment 0-1", "segment 2-6", "segment 7-14"};
static struct function functions[PARTS];
static struct program program;

static void prepare(void)
{
    struct launch launches[LAYERS * PARTS];
    int count = program.layers * program.part_count;
    for (int i = 0; i < count; i++) {
        int layer = i / program.part_count;
        OK(program_launch(&worker, &program.parts[i % program.part_count],
                          program.alone ? 0 : layer, layer, &launches[i], &st));
    }
    OK(fake_prepare(NULL, launches, count, &program.replay, &st));
}

/* Parts first..last; each right, and not verified before. */
static void load_layers(int layers, int first, int last)
{
    program = (struct program){.part_count = last - first + 1,
                               .alone = first == last,
                               .layers = layers,
                               .tolerance = dtypes[DTYPE_FP32].tolerance};
    for (int i = first; i <= last; i++) {
        struct segment s = segments[i];
        functions[i].code = (struct fake_code){"right", s.first, s.last, 0, 0};
        program.parts[i - first] = (struct part){
            .choice = {.chain = &chain_bert,
                       .segment = s,
                       .impl = impl_find(TARGET_CPU, "generated")},
            .name = mem_strdup(names[i]),
            .function = &functions[i],
            .tensors = segment_inputs(&chain_bert, s) | segment_outputs(&chain_bert, s),
            .verdict = mem_strdup("verdict")};
    }
    prepare();
}

static void load(int first, int last)
{
    load_layers(LAYERS, first, last);
}

static void unload(void)
{
    program_release(&worker, &program);
    worker_teardown();
}

/* How many verdicts the parent has heard. */
static int verdicts(void)
{
    char chunk[1 << 16];
    struct buf received;
    json_t *event;
    int count = 0;
    ssize_t n = recv(parent, chunk, sizeof(chunk), MSG_DONTWAIT);
    buf_init(&received);
    buf_add(&received, chunk, n > 0 ? (size_t)n : 0);
    while (message_take(&received, &event) > 0) {
        count += json_object_get(event, "verdict") != NULL;
        json_decref(event);
    }
    buf_release(&received);
    return count;
}

/* The part was verified before. */
static void set_known(struct part *p)
{
    free(p->verdict);
    p->verdict = NULL;
}

/* _i: layers that are compared with the oracle's, on all rows, and then one more time
 * on samples. */
START_TEST(right_plan_passes)
{
    load(0, PARTS - 1);
    program.all_rows = _i <= LAYERS;
    set_known(&program.parts[1]);
    OK(verify_program(&worker, &program, program.all_rows ? _i : LAYERS, &st));
    ck_assert_int_eq(functions[1].code.runs, functions[0].code.runs - 1);
    ck_assert_int_eq(verdicts(), 2);
    ck_assert_int_eq(worker.reference.known, program.all_rows ? _i : 1);
    ck_assert_int_eq(worker.bank.kept[0][TENSOR_X] != NULL,
                     !program.all_rows); /* samples share it */
    ck_assert_double_gt(program.error, 0);
    ck_assert_double_lt(program.error, program.tolerance);
    ck_assert_double_gt(program.once_s, 0);
    OK(verify_again(&worker, &program, true, &st));
    OK(verify_again(&worker, &program, false, &st));
    unload();
}
END_TEST

/* A part runs once alone, once in each layer compared, in each layer one by one, then in all. */
static const struct {
    int part;
    const char *kind;
    int runs;   /* before it goes wrong */
    bool known; /* the part was verified before */
    const char *message;
} wrong[] = {
    {0, "wrong", 0, false, "segment 0-1: wrong result: the output of qkv_bias_split 3x(B,H,S,W) "},
    {1, "wrong", 0, false, "segment 2-6: wrong result: the output of merge_heads (B,S,D) "},
    {2, "wrong", 0, false, "segment 7-14: wrong result: the output of layernorm2 (B,S,D) "},
    {1, "nan", 0, false, "segment 2-6: wrong result: the output of merge_heads "},
    {1, "nothing", 0, false, "segment 2-6: wrong result: the output of merge_heads "},
    {1, "lazy", 0, false, "segment 2-6: wrong result: the output of merge_heads "},
    {1, "wrong", 0, true, "layer 0: wrong result: the output of layernorm2 "},
    {1, "nothing", 0, true, "layer 0: wrong result: the output of layernorm2 "},
    {1, "tired", 1, false, "layer 0: wrong result: the output of layernorm2 "},
    {1, "lazy", 1, false, "layer 0: wrong result: the output of layernorm2 "},
    {1, "tired", 2, false, "layer 1: wrong result: the output of layernorm2 "},
    {1, "tired", 5, false, "wrong result: 2 layers in one run give another result than one by one"},
    {2, "lazy", 6, false, "wrong result: 2 layers in one run give another result than one by one"},
    {1, "stale", 0, false, "wrong result: 2 layers in one run give another result than one by one"},
};

/* _i: a row, then whether all rows are compared. */
START_TEST(wrong_plan_is_found_out)
{
    const int i = _i / 2;
    load(0, PARTS - 1);
    program.all_rows = _i % 2 != 0;
    struct fake_code *code = &functions[wrong[i].part].code;
    strcpy(code->kind, wrong[i].kind);
    code->rested_runs = wrong[i].runs;
    for (int p = 0; p < PARTS && wrong[i].known; p++)
        set_known(&program.parts[p]);
    FAILS(verify_program(&worker, &program, LAYERS, &st), STATUS_WRONG, "");
    ck_assert_msg(strncmp(st.message, wrong[i].message, strlen(wrong[i].message)) == 0, "%s",
                  st.message);
    unload();
}
END_TEST

/* After timing a plan must give what it gave before, by the run that was timed last, unless other
 * programs have run since, and by one more. */
static const struct {
    const char *kind;
    bool timed, kept;
    bool passes;
} timed[] = {
    {"right", true, true, true},    {"right", false, false, true}, {"tired", true, true, false},
    {"tired", false, false, false}, {"lazy", true, true, false},   {"lazy", false, false, false},
    {"right", false, true, false}, /* nothing was run since the result was spoilt */
};

static const char after_timing[] =
    "wrong result: after timing the plan gives another result than before";

START_TEST(result_is_compared_after_timing)
{
    double seconds;
    load(0, PARTS - 1);
    OK(verify_program(&worker, &program, LAYERS, &st));
    strcpy(functions[2].code.kind, timed[_i].kind);
    verify_spoil(&worker, &program);
    if (timed[_i].timed)
        OK(fake_time(program.replay, 1, 1, &seconds, &st));
    ck_assert_int_eq(verify_again(&worker, &program, timed[_i].kept, &st),
                     timed[_i].passes ? 0 : -1);
    if (!timed[_i].passes)
        ck_assert_str_eq(st.message, after_timing);
    unload();
}
END_TEST

/* With one layer, tensors keep the values that a segment ought to write.  It rests as soon as the
 * plan is verified, or when it was timed. */
static const struct {
    int part;
    bool timed;
} resting[] = {{0, false}, {1, false}, {2, false}, {0, true}, {1, true}, {2, true}};

START_TEST(no_segment_rests_unseen)
{
    double seconds;
    load_layers(1, 0, PARTS - 1);
    OK(verify_program(&worker, &program, 1, &st));
    verify_spoil(&worker, &program);
    if (resting[_i].timed)
        OK(fake_time(program.replay, 1, 1, &seconds, &st));
    strcpy(functions[resting[_i].part].code.kind, "lazy");
    if (!resting[_i].timed)
        OK(fake_time(program.replay, 1, 1, &seconds, &st));
    FAILS(verify_again(&worker, &program, true, &st), STATUS_WRONG, "");
    ck_assert_str_eq(st.message, after_timing);
    unload();
}
END_TEST

/* A segment alone is timed on the oracle's inputs, with the weights of all layers, and verified
 * once more after that.  _i: it was verified before. */
START_TEST(segment_alone_is_verified_twice)
{
    double seconds;
    load(1, 1);
    if (_i != 0)
        set_known(&program.parts[0]);
    OK(verify_program(&worker, &program, LAYERS, &st));
    ck_assert_int_eq(functions[1].code.runs, LAYERS + 1 - _i);
    ck_assert(_i != 0 || program.error > 0);
    ck_assert_int_eq(worker.reference.known, 1);
    const float *qkv = tensor_of(0, 2);
    for (int64_t i = 0; i < tensor_elements(2, &worker.w); i++)
        ck_assert_float_eq(qkv[i], worker.reference.layer[0].tensor[2][i]);
    OK(fake_time(program.replay, 1, 1, &seconds, &st));
    OK(verify_again(&worker, &program, true, &st));
    strcpy(functions[1].code.kind, "nothing");
    FAILS(verify_again(&worker, &program, false, &st), STATUS_WRONG, "");
    ck_assert_msg(strncmp(st.message, "after timing: segment 2-6: wrong", 32) == 0, "%s",
                  st.message);
    unload();
}
END_TEST

/* What it gave in the first run of all layers it must give in the others. */
START_TEST(segment_alone_gives_one_result)
{
    double seconds;
    load(1, 1);
    OK(verify_program(&worker, &program, LAYERS, &st));
    verify_spoil(&worker, &program);
    strcpy(functions[1].code.kind, _i == 0 ? "wrong" : "nothing");
    OK(fake_time(program.replay, 1, 1, &seconds, &st));
    FAILS(verify_result(&worker, &program, "while timed", &st), STATUS_WRONG,
          "while timed the segment gives another result than before");
    unload();
}
END_TEST

SUITE("verify", worker_setup, NULL, LOOP(right_plan_passes, 1, LAYERS + 2),
      LOOP(wrong_plan_is_found_out, 0, 2 * ARRAY_LEN(wrong)),
      LOOP(result_is_compared_after_timing, 0, ARRAY_LEN(timed)),
      LOOP(no_segment_rests_unseen, 0, ARRAY_LEN(resting)),
      LOOP(segment_alone_is_verified_twice, 0, 2), LOOP(segment_alone_gives_one_result, 0, 2))
