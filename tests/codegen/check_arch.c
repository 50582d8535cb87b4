#include "codegen/codegen.h"
#include "tests/suite.h"

static const struct {
    const char *text;
    struct arch_list list;
    const char *options; /* of nvcc */
} lists[] = {
    {"sm_80", {1, {80}}, "-gencode arch=compute_80,code=sm_80"},
    {"sm_90a", {1, {90}}, "-gencode arch=compute_90a,code=sm_90a"},
    {"sm_90a,sm_80,sm_90a",
     {2, {80, 90}},
     "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a"},
    {"sm_120,sm_89,sm_100",
     {3, {89, 100, 120}},
     "-gencode arch=compute_89,code=sm_89 -gencode arch=compute_100,code=sm_100 -gencode "
     "arch=compute_120,code=sm_120"},
};

TEST_LOOP(lists_are_read_and_written, 0, ARRAY_LEN(lists))
{
    struct arch_list got;
    SCOPED_BUF options = BUF_INIT;
    OK(arch_parse_list(lists[_i].text, &got, &st));
    ck_assert_int_eq(got.count, lists[_i].list.count);
    for (int i = 0; i < got.count; i++)
        ck_assert_int_eq(got.arch[i], lists[_i].list.arch[i]);
    arch_options(&got, &options);
    ck_assert_str_eq(options.ptr, lists[_i].options);
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"sm_80,sm_7", "'sm_7' is too old"},
    {"sm_80a", "'sm_80a' is unknown; expected some of sm_80, sm_86"},
    {"sm_999", "'sm_999' is unknown"},
    {"", "'' is unknown"},
    {"sm_80, sm_86", "' sm_86' is unknown"},
};

TEST_LOOP(what_is_no_list_is_refused, 0, ARRAY_LEN(refused))
{
    struct arch_list got;
    FAILS(arch_parse_list(refused[_i].text, &got, &st), STATUS_USAGE, refused[_i].says);
    ck_assert_int_eq(got.count, 0);
}

static const struct {
    int arch, device;
    bool runs;
} pairs[] = {
    {80, 80, true}, {80, 86, true},   {86, 80, false}, {80, 90, false},
    {90, 90, true}, {90, 100, false}, {90, 91, false}, {100, 103, true},
};

TEST_LOOP(code_runs_within_a_major_version, 0, ARRAY_LEN(pairs))
{
    ck_assert_int_eq(arch_runs(pairs[_i].arch, pairs[_i].device), pairs[_i].runs);
}

SUITE("arch", NULL, NULL)
