#include "bench/bench.h"
#include "tests/suite.h"
#include "tests/workload.h"

#include <math.h>
#include <string.h>

#define NAMES "variant,dtype,batch,seq_len,mask,us\n"

static struct status st; /* of the call that a test is about */

static struct peers parse(const char *text)
{
    struct peers p;
    OK(peers_parse("p.csv", text, strlen(text), &p, &st));
    return p;
}

/* Texts with the times 2.5 and 3 of the variant `a b` for sliding:w=8 and longformer:g=4,w=8. */
static const char *const same_rows[] = {
    NAMES "a b,fp16,2,64,sliding:w=8,2.5\na b,fp16,2,64,\"longformer:g=4,w=8\",3\n",
    NAMES "\"a b\",fp16,\"2\",64,\"sliding:w=8\",2.5\r\n\r\na b,fp16,2,64,\"longformer:g=4,w=8\",3",
    "\nus,mask,note,seq_len,batch,dtype,variant\n25e-1,sliding:w=8,,64,2,fp16,a b\n"
    "3.0,\"longformer:g=4,w=8\",\"a \"\"note\"\", quoted\",64,2,fp16,a b\n",
};

START_TEST(the_same_rows_in_other_words)
{
    struct peers p = parse(same_rows[_i]);
    ck_assert_int_eq(p.variant_count, 1);
    ck_assert_str_eq(p.variants[0], "a b");
    ck_assert_int_eq(p.count, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(p.items[i].dtype, DTYPE_FP16);
        ck_assert_int_eq(p.items[i].batch, 2);
        ck_assert_int_eq(p.items[i].seq_len, 64);
        ck_assert_str_eq(p.items[i].mask, i == 0 ? "sliding:w=8" : "longformer:g=4,w=8");
        ck_assert_double_eq(p.items[i].us, i == 0 ? 2.5 : 3);
    }
    peers_release(&p);
}
END_TEST

/* A row is of one type, batch size, length and mask, whichever way the mask is written. */
START_TEST(only_rows_of_the_workload_count)
{
    static const char text[] = NAMES "sdpa,fp32,1,64,strided:t=8,1\n"
                                     "flex,fp32,1,64,strided,2\n"
                                     "flex,fp16,1,64,strided:t=8,3\n"
                                     "flex,fp32,2,64,strided:t=8,4\n"
                                     "flex,fp32,1,128,strided:t=8,5\n"
                                     "flex,fp32,1,64,strided:t=9,6\n"
                                     "other,fp32,1,64,file:0123,7\n";
    double us[PEER_VARIANTS_MAX];
    struct peers p = parse(text);
    struct workload w = {.chain = &chain_bert,
                         .batch = 1,
                         .seq_len = 64,
                         .heads = 1,
                         .head_size = 4,
                         .layers = 1,
                         .eps = 1e-5};
    workload_ready(&w, "strided", NULL, NULL);
    ck_assert_int_eq(peers_find(&p, &w, us), 2);
    ck_assert_int_eq(p.variant_count, 3);
    ck_assert_double_eq(us[0], 1);
    ck_assert_double_eq(us[1], 2);
    ck_assert(isnan(us[2]));
    workload_release(&w);

    struct workload padded = {.chain = &chain_bert,
                              .batch = 1,
                              .seq_len = 64,
                              .heads = 1,
                              .head_size = 4,
                              .layers = 1,
                              .eps = 1e-5};
    workload_ready(&padded, "strided", "60", NULL);
    ck_assert_int_eq(peers_find(&p, &padded, us), 0);
    ck_assert(isnan(us[0]) && isnan(us[1]));
    workload_release(&padded);
    peers_release(&p);
}
END_TEST

START_TEST(a_file_of_names_alone_has_no_rows)
{
    double us[PEER_VARIANTS_MAX];
    struct workload w = {.chain = &chain_bert,
                         .batch = 1,
                         .seq_len = 8,
                         .heads = 1,
                         .head_size = 4,
                         .layers = 1,
                         .eps = 1e-5};
    struct peers p = parse(NAMES);
    workload_ready(&w, "full", NULL, NULL);
    ck_assert_int_eq(peers_find(&p, &w, us), 0);
    workload_release(&w);
    peers_release(&p);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "p.csv:1:1: the file is empty"},
    {"\n\r\n", "p.csv:1:1: the file is empty"},
    {"variant,dtype,batch,seq,mask,us\n", "p.csv:1:1: the column 'seq_len' is missing"},
    {"us," NAMES, "p.csv:1:37: the column 'us' comes twice"},
    {NAMES "a,fp16,1,8,full\n", "p.csv:2:12: the line has 5 fields, and the header has 6"},
    {NAMES "a,fp16,1,8,prefix:p=4,1,2\n", "p.csv:2:25: the line has 7 fields"},
    {NAMES ",fp16,1,8,full,1\n", "p.csv:2:1: variant: '' is no name"},
    {NAMES "\"a\tb\",fp16,1,8,full,1\n", "p.csv:2:1: variant: "},
    {NAMES "a\xff,fp16,1,8,full,1\n", "p.csv:2:1: variant: "},
    {NAMES "a,half,1,8,full,1\n", "p.csv:2:3: dtype: 'half' is no type; expected fp32, tf32"},
    {NAMES "a,fp16,0,8,full,1\n", "p.csv:2:8: batch: 0 is out of range"},
    {NAMES "a,fp16,1.5,8,full,1\n", "p.csv:2:8: batch: '1.5' is not a whole number"},
    {NAMES "a,fp16,1,,full,1\n", "p.csv:2:10: seq_len: '' is not a whole number"},
    {NAMES "a,fp16,1,8,ful,1\n", "p.csv:2:12: mask: unknown mask 'ful'"},
    {NAMES "a,fp16,1,8,sliding:w=8;2,1\n", "p.csv:2:12: mask: "},
    {NAMES "a,fp16,1,8,full,\n", "p.csv:2:17: us: '' is not a number"},
    {NAMES "a,fp16,1,8,full,fast\n", "p.csv:2:17: us: 'fast' is not a number"},
    {NAMES "a,fp16,1,8,full,-1\n", "p.csv:2:17: us: -1 is out of range"},
    {NAMES "a,fp16,1,8,full,0\n", "p.csv:2:17: us: 0 is out of range"},
    {NAMES "a,fp16,1,8,full,inf\n", "p.csv:2:17: us: 'inf' is not a number"},
    {NAMES "\"a,fp16,1,8,full,1\n", "p.csv:2:1: a quoted field does not end"},
    {NAMES "a,\"fp16\" ,1,8,full,1\n", "p.csv:2:9: text follows a quoted field"},
    {NAMES "a,fp16,1,64,strided,1\na,fp16,1,64,strided:t=8,2\n",
     "p.csv:3:1: line 2 has a time of 'a' for the same workload"},
};

START_TEST(says_where_the_file_is_wrong)
{
    struct peers p;
    FAILS(peers_parse("p.csv", bad[_i].text, strlen(bad[_i].text), &p, &st), STATUS_USAGE,
          bad[_i].says);
    ck_assert_int_eq(p.count, 0);
    ck_assert_ptr_null(p.items);
}
END_TEST

START_TEST(a_byte_0_is_no_text)
{
    static const char text[] = NAMES "a,fp16,1,8,full,1\0\n";
    struct peers p;
    FAILS(peers_parse("p.csv", text, sizeof(text) - 1, &p, &st), STATUS_USAGE,
          "p.csv:2:18: a NUL byte");
}
END_TEST

START_TEST(variants_have_a_limit)
{
    struct peers p;
    struct buf text;
    buf_init(&text);
    buf_adds(&text, NAMES);
    for (int i = 0; i < PEER_VARIANTS_MAX; i++)
        buf_addf(&text, "v%d,fp16,1,8,full,1\n", i);
    OK(peers_parse("p.csv", text.ptr, text.len, &p, &st));
    peers_release(&p);
    buf_adds(&text, "more,fp16,1,8,full,1\n");
    FAILS(peers_parse("p.csv", text.ptr, text.len, &p, &st), STATUS_USAGE,
          "p.csv:18:1: 'more' is one variant more than the 16 that fit");
    buf_release(&text);
}
END_TEST

SUITE("peers", NULL, NULL, LOOP(the_same_rows_in_other_words, 0, ARRAY_LEN(same_rows)),
      ONCE(only_rows_of_the_workload_count), ONCE(a_file_of_names_alone_has_no_rows),
      LOOP(says_where_the_file_is_wrong, 0, ARRAY_LEN(bad)), ONCE(a_byte_0_is_no_text),
      ONCE(variants_have_a_limit))
