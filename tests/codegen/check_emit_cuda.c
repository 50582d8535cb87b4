/* `emit_cuda golden tests/golden` writes the golden files anew after a change that is meant. */
#include "cuda_sources.h"
#include "golden.h"

static const struct build_target hopper = {HOPPER_FP16, .library = true};

TEST_LOOP(matches_golden, 0, CUDA_GOLDEN_COUNT)
{
    struct cuda_source s = cuda_golden(_i);
    check_golden(&s.choice, &s.target, ".cu");
}

/* With stamps a text stands in front, and a kernel has one parameter and one line more. */
TEST_LOOP(stamps_change_nothing_else, 0, CUDA_GOLDEN_COUNT)
{
    static const char parameter[] = "fp_stamps *stamps, ",
                      line[] = "    const fp::stamped_kernel until_its_end(stamps);\n";
    struct cuda_source s = cuda_golden(_i);
    const bool has = !s.choice.impl->library; /* else no kernel is compiled */
    const char *body;
    SCOPED_BUF plain = BUF_INIT, stamped = BUF_INIT;
    choice_emit(&s.choice, &s.target, &plain);
    s.choice.stamped = true;
    choice_emit(&s.choice, &s.target, &stamped);
    ck_assert(!has || strstr(stamped.ptr, "#ifndef FUSEPLAN_CUDA_STAMPS_H") != NULL);
    ck_assert_ptr_null(strstr(plain.ptr, "stamp"));
    body = strstr(stamped.ptr, has ? "\n#endif\n/* " : "/* ");
    ck_assert_ptr_nonnull(body);
    body += has ? strlen("\n#endif\n") : 0;
    ck_assert_uint_eq(strlen(body), plain.len + (has ? strlen(parameter) + strlen(line) : 0));
    ck_assert(!has || (strstr(body, parameter) != NULL && strstr(body, line) != NULL));
}

static void emit_generated(int segment, struct buf *out)
{
    const struct choice c = {.chain = &chain_bert,
                             .segment = segment_at(segment),
                             .impl = impl_find(TARGET_CUDA, "generated")};
    choice_emit(&c, &hopper, out);
}

static bool embedded(const char *name, size_t len)
{
    const struct kernel_file *files;
    int count = kernel_files(TARGET_CUDA, &files);
    for (int i = 0; i < count; i++)
        if (strlen(files[i].name) == len && strncmp(files[i].name, name, len) == 0)
            return true;
    return false;
}

static void check_includes(const char *text)
{
    for (const char *p = text; (p = strstr(p, "#include ")) != NULL; p++)
        if (strncmp(p + 9, "<stdbool.h>", 11) != 0) /* of C alone */
            ck_assert_msg(p[9] == '"' && embedded(p + 10, strcspn(p + 10, "\"")), "%.60s", p);
}

/* Sources and kernels include nothing that NVRTC would have to look for. */
TEST(headers_are_embedded)
{
    const struct kernel_file *files;
    int count = kernel_files(TARGET_CUDA, &files);
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(strlen(files[i].text), files[i].len);
        check_includes(files[i].text);
    }
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        SCOPED_BUF text = BUF_INIT;
        emit_generated(i, &text);
        ck_assert_ptr_nonnull(strstr(text.ptr, "#include "));
        check_includes(text.ptr);
    }
}

SUITE("emit_cuda", NULL, NULL)
