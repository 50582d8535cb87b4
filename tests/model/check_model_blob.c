#include "tests/made_up.h"
#include "tests/suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static struct status st; /* of the call that a test is about */

enum { ROWS = 48 };
enum { FORMAT_AT = 8, FEATURES_VERSION_AT = 12, HASH_AT = 96, HASH_BYTES = 32, HEADER_BYTES = 128 };

struct fixture {
    struct measured_space *space;
    struct model *model;
    struct buf blob;
};

static struct fixture fixture_new(enum feature_set features)
{
    struct fixture f = {.space = made_up_measured(1)};
    struct model_options o = {.features = features, .seed = 1, .quantile = 0.2, .rounds = 10};
    struct model_data d = {.count = ROWS, .plans = f.space->plans, .ms = f.space->ms};
    buf_init(&f.blob);
    OK(model_train(&o, &d, &f.space->times, &f.model, &st));
    OK(model_save(f.model, &f.blob, &st));
    return f;
}

static void fixture_free(struct fixture *f)
{
    model_free(f->model);
    buf_release(&f->blob);
    free(f->space);
}

/* Writes the right hash into a blob that a test has changed. */
static void seal(struct buf *blob)
{
    char hash[HASH_TEXT_SIZE];
    memset(blob->ptr + HASH_AT, 0, HASH_BYTES);
    memcpy(blob->ptr + HASH_AT, hash_text(blob->ptr, blob->len, hash), HASH_BYTES);
}

static void assert_refused(const void *bytes, size_t len, const char *message)
{
    struct model *m;
    FAILS(model_load(bytes, len, &m, &st), STATUS_MODEL, message);
    ck_assert_ptr_null(m);
}

/* _i: the feature set. */
START_TEST(a_loaded_model_answers_alike)
{
    struct fixture f = fixture_new((enum feature_set)_i);
    struct model *loaded;
    static struct plan plans[VALUE_MAX + 1];
    static double ms[2][VALUE_MAX + 1], high[2][VALUE_MAX + 1];
    for (unsigned v = 0; v <= VALUE_MAX; v++)
        plans[v] = plan_from_value(v);
    OK(model_load(f.blob.ptr, f.blob.len, &loaded, &st));
    struct model *const models[] = {f.model, loaded};
    for (int i = 0; i < 2; i++)
        OK(model_predict(models[i], plans, VALUE_MAX + 1, &f.space->times, ms[i], high[i], &st));
    ck_assert_mem_eq(ms[0], ms[1], sizeof(ms[0]));
    ck_assert_mem_eq(high[0], high[1], sizeof(high[0]));
    ck_assert_double_eq(model_threshold_ms(loaded), model_threshold_ms(f.model));
    model_free(loaded);
    fixture_free(&f);
}
END_TEST

START_TEST(a_loaded_model_saves_the_same_bytes)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    struct model *loaded;
    struct buf again;
    buf_init(&again);
    OK(model_load(f.blob.ptr, f.blob.len, &loaded, &st));
    OK(model_save(loaded, &again, &st));
    ck_assert_uint_eq(again.len, f.blob.len);
    ck_assert_mem_eq(again.ptr, f.blob.ptr, again.len);
    model_free(loaded);
    buf_release(&again);
    fixture_free(&f);
}
END_TEST

START_TEST(save_appends)
{
    struct fixture f = fixture_new(FEATURES_BITS);
    struct buf out;
    buf_init(&out);
    buf_adds(&out, "before");
    OK(model_save(f.model, &out, &st));
    ck_assert_uint_eq(out.len, 6 + f.blob.len);
    ck_assert_mem_eq(out.ptr + 6, f.blob.ptr, f.blob.len);
    buf_release(&out);
    fixture_free(&f);
}
END_TEST

START_TEST(every_cut_is_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    for (size_t len = 0; len < HEADER_BYTES; len++)
        assert_refused(f.blob.ptr, len, "not a fuseplan model");
    for (size_t len = HEADER_BYTES; len < f.blob.len; len += 61)
        assert_refused(f.blob.ptr, len, "it was cut or added to");
    assert_refused(f.blob.ptr, f.blob.len - 1, "it was cut or added to");
    buf_adds(&f.blob, "x");
    assert_refused(f.blob.ptr, f.blob.len, "it was cut or added to");
    fixture_free(&f);
}
END_TEST

START_TEST(every_damage_is_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    for (size_t at = 0; at < f.blob.len; at += at < HEADER_BYTES ? 1 : 61) {
        f.blob.ptr[at] ^= 0x10;
        assert_refused(f.blob.ptr, f.blob.len, "");
        f.blob.ptr[at] ^= 0x10;
    }
    f.blob.ptr[f.blob.len - 1] ^= 1;
    assert_refused(f.blob.ptr, f.blob.len, "it is damaged; train it again");
    fixture_free(&f);
}
END_TEST

START_TEST(other_versions_are_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    f.blob.ptr[FORMAT_AT]++;
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "format 2 and this fuseplan reads 1; update");
    f.blob.ptr[FORMAT_AT] = 0;
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "format 0 and this fuseplan reads 1");
    f.blob.ptr[FORMAT_AT] = 1;
    f.blob.ptr[FEATURES_VERSION_AT]++;
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len,
                   "features version 2 and this fuseplan 1; train it again");
    fixture_free(&f);
}
END_TEST

/* The hash is right, what it is of is not: XGBoost's own reader must refuse. */
START_TEST(nonsense_with_a_right_hash_is_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    memset(f.blob.ptr + HEADER_BYTES, 'x', f.blob.len - HEADER_BYTES);
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "xgboost cannot read the model");
    fixture_free(&f);
}
END_TEST

enum { ROUNDS = 25 };
#ifdef __SANITIZE_ADDRESS__
enum { FUZZED = 0 }; /* the child's memory has no bound there, and damage may ask for any amount */
#else
enum { FUZZED = 4 };
#endif

/* As an attacker would: bytes of the boosters change, and the hash is right.  A model that is not
 * refused must answer. */
START_TEST(random_damage_with_a_right_hash_crashes_nothing)
{
    struct rng rng = {.state = splitmix64((uint64_t)_i)};
    struct fixture f = fixture_new(FEATURES_PLAN);
    struct buf blob;
    buf_init(&blob);
    for (int i = 0; i < ROUNDS; i++) {
        struct model *m;
        struct status said = STATUS_INIT;
        double ms[ROWS], high[ROWS];
        buf_reset(&blob);
        buf_add(&blob, f.blob.ptr, f.blob.len);
        for (uint32_t n = 1 + rng_below(&rng, 8); n > 0; n--) {
            size_t at = HEADER_BYTES + rng_below(&rng, (uint32_t)(blob.len - HEADER_BYTES));
            blob.ptr[at] = (char)rng_below(&rng, 256);
        }
        seal(&blob);
        if (model_load(blob.ptr, blob.len, &m, &said) != 0) {
            ck_assert_int_eq(said.code, STATUS_MODEL);
            continue;
        }
        OK(model_predict(m, f.space->plans, ROWS, &f.space->times, ms, high, &st));
        model_free(m);
    }
    buf_release(&blob);
    fixture_free(&f);
}
END_TEST

/* Finds the first node of the first tree in UBJSON: an array of big-endian numbers of 32 bits. */
static char *array_named(struct buf *blob, const char *name)
{
    char *at = memmem(blob->ptr, blob->len, name, strlen(name));
    ck_assert_ptr_nonnull(at);
    return at + strlen(name) + strlen("[$l#L") + 8;
}

static const struct {
    const char *array;
    unsigned char first; /* byte of the first number */
} trees[] = {{"left_children", 0x7f}, {"right_children", 0x80}, {"split_indices", 0x01}};

START_TEST(children_and_columns_out_of_range_are_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    array_named(&f.blob, trees[_i].array)[0] = (char)trees[_i].first;
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "train it again");
    fixture_free(&f);
}
END_TEST

START_TEST(circle_of_nodes_is_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    array_named(&f.blob, "left_children")[3] = 0; /* the root is its own child */
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "train it again");
    fixture_free(&f);
}
END_TEST

START_TEST(boosters_of_another_kind_are_refused)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    uint32_t features = FEATURES_BITS;
    memcpy(f.blob.ptr + 16, &features, sizeof(features));
    seal(&f.blob);
    assert_refused(f.blob.ptr, f.blob.len, "137 features where its kind has 16");
    fixture_free(&f);
}
END_TEST

/* ---- the process that checks a model --------------------------------------------------------- */

static int kills_left, killed_by; /* of the processes that this one starts next */
static bool dies;

static void before_fork(void)
{
    dies = kills_left > 0 && kills_left-- > 0;
}

static void in_child(void)
{
    if (!dies)
        return;
    signal(killed_by, SIG_DFL); /* Check handles some */
    raise(killed_by);
}

static void kill_next(int count, int by)
{
    static bool watched;
    if (!watched)
        OK(pthread_atfork(before_fork, NULL, in_child));
    watched = true;
    kills_left = count;
    killed_by = by;
}

START_TEST(model_is_right_though_its_first_check_was_killed)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGALRM};
    struct fixture f = fixture_new(FEATURES_PLAN);
    struct model *m;
    kill_next(1, signals[_i]);
    OK(model_load(f.blob.ptr, f.blob.len, &m, &st));
    ck_assert_int_eq(kills_left, 0);
    model_free(m);
    fixture_free(&f);
}
END_TEST

static int looks_left; /* at the clock, until it is ahead by an hour */
static int ahead_s;

/* In the place of the system's. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (looks_left > 0 && --looks_left == 0)
        ahead_s = 3600;
    out->tv_sec += ahead_s;
    return result;
}

START_TEST(check_that_is_suspended_is_begun_again)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    struct model *m;
    kill_next(1, SIGSTOP);
    looks_left = 3; /* while the parent waits for its answer */
    OK(model_load(f.blob.ptr, f.blob.len, &m, &st));
    ahead_s = 0;
    ck_assert_int_eq(kills_left, 0);
    model_free(m);
    fixture_free(&f);
}
END_TEST

START_TEST(check_that_is_always_killed_is_not_the_models_fault)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    struct model *m;
    kill_next(2, SIGKILL);
    FAILS(model_load(f.blob.ptr, f.blob.len, &m, &st), STATUS_ENVIRONMENT,
          "stopped 2 times, the last time by SIGKILL");
    fixture_free(&f);
}
END_TEST

START_TEST(check_that_crashes_is_not_repeated)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    kill_next(1, SIGSEGV);
    assert_refused(f.blob.ptr, f.blob.len, "xgboost crashes on the stored model");
    fixture_free(&f);
}
END_TEST

static bool computes_for_ever; /* a check, once its processor time is limited */

/* In the place of the system's.  A second of processor time is enough for a test.  A sanitizer
 * calls it before it is ready for code of its own. */
__attribute__((no_sanitize("address", "undefined"))) int setrlimit(__rlimit_resource_t resource,
                                                                   const struct rlimit *limit)
{
    struct rlimit shorter = {1, 1 + limit->rlim_max - limit->rlim_cur};
    bool spins = computes_for_ever && resource == RLIMIT_CPU;
    int result = (int)syscall(SYS_prlimit64, 0, resource, spins ? &shorter : limit, NULL);
    while (spins)
        ;
    return result;
}

START_TEST(check_that_computes_for_ever_is_the_models_fault)
{
    struct fixture f = fixture_new(FEATURES_PLAN);
    computes_for_ever = true;
    assert_refused(f.blob.ptr, f.blob.len, "xgboost crashes on the stored model");
    computes_for_ever = false;
    fixture_free(&f);
}
END_TEST

START_TEST(other_files_are_refused)
{
    static char zeros[1000];
    assert_refused(zeros, sizeof(zeros), "1000 bytes that are not a fuseplan model");
    assert_refused("", 0, "0 bytes that are not a fuseplan model");
}
END_TEST

SUITE("model blob", NULL, NULL, LOOP(a_loaded_model_answers_alike, 0, 2),
      ONCE(a_loaded_model_saves_the_same_bytes), ONCE(save_appends), ONCE(every_cut_is_refused),
      ONCE(every_damage_is_refused), ONCE(other_versions_are_refused),
      ONCE(nonsense_with_a_right_hash_is_refused),
      LOOP(random_damage_with_a_right_hash_crashes_nothing, 0, FUZZED),
      LOOP(children_and_columns_out_of_range_are_refused, 0, ARRAY_LEN(trees)),
      ONCE(circle_of_nodes_is_refused), ONCE(boosters_of_another_kind_are_refused),
      LOOP(model_is_right_though_its_first_check_was_killed, 0, 3),
      ONCE(check_that_is_suspended_is_begun_again),
      ONCE(check_that_is_always_killed_is_not_the_models_fault),
      ONCE(check_that_crashes_is_not_repeated),
      ONCE(check_that_computes_for_ever_is_the_models_fault), ONCE(other_files_are_refused))
