#include "base/base.h"
#include "tests/suite.h"

START_TEST(cpu_is_described)
{
    struct cpu_info a, b;
    cpu_info_read(&a);
    cpu_info_read(&b);
    ck_assert_int_gt((int)strlen(a.model), 0);
    ck_assert_int_gt((int)strlen(a.extension), 0);
    ck_assert_int_eq(strncmp(a.kernel, "Linux ", 6), 0);
    ck_assert_str_eq(a.flags_hash, b.flags_hash);
    ck_assert_int_ge(cpu_threads(), 1);
}
END_TEST

SUITE("cpu info", NULL, NULL, ONCE(cpu_is_described))
