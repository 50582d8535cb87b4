/* What a worker writes of one plan. */
#include "tests/bench/fixture.h"

enum { FILES = 4 + 2 * WEIGHT_MAX }; /* x, y, mask, the workload, and two layers' weights */

static struct status st; /* of the call that a test is about */

static void check_npy(const char *name, enum npy_type type, int ndim, const int64_t *shape)
{
    struct buf bytes;
    struct npy array;
    char path[128];
    snprintf(path, sizeof(path), "dump/%s.npy", name);
    buf_init(&bytes);
    OK(file_read(test_path(path), 0, &bytes, &st));
    OK(npy_parse(bytes.ptr, bytes.len, &array, &st));
    ck_assert_int_eq(array.type, type);
    ck_assert_int_eq(array.ndim, ndim);
    for (int i = 0; i < ndim; i++)
        ck_assert_int_eq(array.shape[i], shape[i]);
    buf_release(&bytes);
}

START_TEST(everything_is_dumped)
{
    static const struct {
        const char *name;
        int ndim;
        int64_t shape[3];
    } arrays[] = {
        {"x", 3, {2, 5, 8}},       {"y", 3, {2, 5, 8}},       {"layer0.wqkv", 2, {8, 24}},
        {"layer0.bqkv", 1, {24}},  {"layer0.wo", 2, {8, 8}},  {"layer0.bo", 1, {8}},
        {"layer0.gamma1", 1, {8}}, {"layer0.beta1", 1, {8}},  {"layer0.w1", 2, {8, 32}},
        {"layer0.b1", 1, {32}},    {"layer0.w2", 2, {32, 8}}, {"layer1.b2", 1, {8}},
        {"layer1.gamma2", 1, {8}}, {"layer1.beta2", 1, {8}},
    };
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    OK(bench_dump(b, &c, test_path("dump"), false, &st));
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
        check_npy(arrays[i].name, NPY_FLOAT32, arrays[i].ndim, arrays[i].shape);
    check_npy("mask", NPY_BOOL, 2, (const int64_t[]){5, 5});
    ck_assert(!file_exists(test_path("dump/layer2.wqkv.npy")));
    bench_close(b);
}
END_TEST

static void check_entries(const char *name, int expected)
{
    struct names found;
    OK(directory_list(test_path(name), &found, &st));
    ck_assert_int_eq(found.count, expected);
    names_release(&found);
}

/* The place is taken: what is there stays as it is, and nothing is left beside it. */
START_TEST(dump_is_whole_or_not_at_all)
{
    struct status ignored = STATUS_INIT;
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    ck_assert_int_eq(file_make_dirs(test_path("place/taken"), &ignored), 0);
    write_text(test_path("place/taken/mine"), "");
    FAILS(bench_dump(b, &c, test_path("place/taken/"), false, &st), STATUS_ENVIRONMENT,
          "it holds 'mine'");
    check_entries("place/taken", 1);
    check_entries("place", 1);
    OK(bench_dump(b, &c, test_path("place/taken/"), true, &st));
    check_entries("place/taken", 1 + FILES);
    bench_close(b);
}
END_TEST

/* Only the directory that the worker writes to has to be UTF-8. */
START_TEST(dump_needs_a_path_that_can_travel)
{
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    OK(bench_dump(b, &c, test_path("caf\xe9"), false, &st));
    FAILS(bench_dump(b, &c, test_path("caf\xe9/dump"), false, &st), STATUS_ENVIRONMENT,
          "is not UTF-8");
    bench_close(b);
}
END_TEST

SUITE("ask", test_dir_setup, test_dir_teardown, ONCE(everything_is_dumped),
      ONCE(dump_is_whole_or_not_at_all), ONCE(dump_needs_a_path_that_can_travel))
