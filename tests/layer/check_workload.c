#include "kernels/library/encoder.h"
#include "tests/chains.h"
#include "tests/masks.h"
#include "tests/workload.h"

#include <limits.h>

/* Only a chain that is not BERT's is named. */
TEST(text_names_other_chains)
{
    SCOPED_BUF text = BUF_INIT;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 8);
    w.chain = chain_of_test(CHAIN_NO_BIAS);
    OK(workload_check(&w, &st));
    workload_text(&w, &text);
    ck_assert_ptr_nonnull(strstr(text.ptr, " mask=full chain=nobias"));
}

static const char *const texts[] = {
    "b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal",
    "b=3 s=100 h=2 w=8 f=5 l=1 eps=0.30000000000000004 dtype=bf16 lengths=7,100,1 "
    "mask=strided:t=10",
    "b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp16 lengths=full mask=file:0123456789abcdef",
    "b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp16 lengths=full mask=full chain=pre+bias",
    "b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp16 lengths=full mask=full chain=silu+gate+rope "
    "rope=160000",
    "b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp16 lengths=full mask=causal chain=bert "
    "local=sliding:w=2 every=2",
    "b=2 s=8 h=1 w=4 f=16 l=22 eps=1e-05 dtype=fp16 lengths=8,3 mask=full "
    "chain=pre+gate+rope rope=160000 local=sliding:w=64 local_rope=10000 every=3",
    "b=1 s=8 h=6 w=64 f=16 l=1 eps=1e-06 dtype=fp16 lengths=full mask=full chain=hidden hidden=512",
    "b=1 s=8 h=6 w=64 f=16 l=1 eps=1e-06 dtype=fp16 lengths=full mask=full chain=pre+rope+hidden "
    "rope=100:2.5 hidden=512",
};

TEST_LOOP(text_gives_the_workload_back, 0, ARRAY_LEN(texts))
{
    SCOPED_BY(workload_release) struct workload w;
    SCOPED_BUF text = BUF_INIT;
    OK(workload_parse(texts[_i], &w, &st));
    workload_text(&w, &text);
    ck_assert_str_eq(text.ptr, texts[_i]);
}

static const struct {
    const char *text, *expected;
} bad_texts[] = {
    {"b=1 s=128", "it lacks 'h='"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp64", "it names no dtype"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-300 dtype=fp32 lengths=full mask=full", "eps: 1e-300"},
    {"b=2 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=9,9", "9"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full", "it lacks 'mask='"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=none",
     "unknown attention mask"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=causal mask=full",
     "it goes on after its attention mask: 'mask=full'"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=bert",
     "there is no other chain 'bert'"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre rope=10000",
     "it goes on after its chain"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=rope",
     "it lacks 'rope='"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=rope rope=0",
     "rope: 0 is out of range"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=rope rope=9:0.5",
     "rope: 0.5 is out of range; give a number from 1 to 1e+06"},
    {"b=1 s=8 h=1 w=3 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=rope rope=10",
     "head_size is 3; rotary embeddings need an even number"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=hidden",
     "it lacks 'hidden='"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=hidden hidden=4",
     "its hidden size is that of its heads"},
    {"b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp32 lengths=full mask=full chain=bert local=causal",
     "it lacks 'every='"},
    {"b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp32 lengths=full mask=full chain=bert local=causal "
     "every=1",
     "global_every is 1; give a number from 2 to 1024"},
    {"b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp32 lengths=full mask=full chain=bert local=causal "
     "every=2 every=3",
     "it goes on after its kinds of layers"},
    {"b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp32 lengths=full mask=full chain=rope rope=10 "
     "local=causal every=2",
     "it lacks 'local_rope='"},
    {"b=1 s=8 h=1 w=4 f=16 l=2 eps=1e-05 dtype=fp32 lengths=full mask=full chain=bert "
     "local=file:0123 every=2",
     "the attention mask of local layers is a file"},
    {"b=1 s=8 h=1 w=4 f=16 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full chain=pre hidden=8",
     "it goes on after its chain"},
};

TEST_LOOP(other_texts_are_refused, 0, ARRAY_LEN(bad_texts))
{
    SCOPED_BY(workload_release) struct workload w;
    FAILS(workload_parse(bad_texts[_i].text, &w, &st), STATUS_USAGE, bad_texts[_i].expected);
    ck_assert_msg(strstr(st.message, "is not a workload") != NULL, "%s", st.message);
}

/* ---- numbers that are refused ---------------------------------------------------------------- */

#define AT(field) offsetof(struct workload, field)

static const struct {
    size_t field;
    int value;
    const char *found, *expected;
} bad_numbers[] = {{AT(batch), 0, "batch is 0", "1 to 65536"},
                   {AT(batch), 65537, "batch is 65537", "TiB of memory; give at most 65536"},
                   {AT(seq_len), INT_MIN, "seq_len is -2147483648", "1 to 65536"},
                   {AT(seq_len), INT_MAX, "seq_len is 2147483647", "EiB of memory"},
                   {AT(heads), 0, "heads is 0", "1 to 1024"},
                   {AT(head_size), -64, "head_size is -64", "1 to 4096"},
                   {AT(ffn), -1, "ffn is -1", "1 to 1048576"},
                   {AT(layers), 0, "layers is 0", "1 to 1024"},
                   {AT(hidden), 65537, "hidden is 65537", "at most 65536"},
                   {AT(batch), 65536, "batch * seq_len is 33554432", "at most 16777216"},
                   {AT(head_size), 4096, "heads * head_size is 81920", "at most 65536"}};

TEST_LOOP(refuses_numbers, 0, ARRAY_LEN(bad_numbers))
{
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 512);
    w.heads = 20;
    *(int *)((char *)&w + bad_numbers[_i].field) = bad_numbers[_i].value;
    FAILS(workload_check(&w, &st), STATUS_USAGE, bad_numbers[_i].found);
    ck_assert_msg(strstr(st.message, bad_numbers[_i].expected) != NULL, "%s", st.message);

    struct status lengths = STATUS_INIT; /* refused there too, before anything is allocated */
    ck_assert_int_eq(workload_draw_lengths(&w, 1, 0, &lengths), -1);
    ck_assert_str_eq(lengths.message, st.message);
}

/* ---- lengths --------------------------------------------------------------------------------- */

static const struct {
    const char *text, *found, *expected;
} bad_lengths[] = {{"", "''", "whole number"},
                   {"1,,3", "''", "whole number"},
                   {"1, 2,3", "' 2'", "whole number"},
                   {"0,1,2", "0 is out of range", "1 to 64"}};

TEST_LOOP(refuses_lengths, 0, ARRAY_LEN(bad_lengths))
{
    SCOPED_BY(workload_release) struct workload w = workload_sized(3, 64);
    FAILS(workload_parse_lengths(&w, bad_lengths[_i].text, &st), STATUS_USAGE,
          bad_lengths[_i].found);
    ck_assert_msg(strstr(st.message, bad_lengths[_i].expected) != NULL, "%s", st.message);
    FAILS(workload_draw_lengths(&w, _i % 2 == 0 ? 0 : 65, 0, &st), STATUS_USAGE, "give 1 to 64");
    ck_assert_ptr_null(w.lengths);
}

TEST(full_lengths_are_none)
{
    SCOPED_BY(workload_release) struct workload w = workload_sized(2, 64);
    OK(workload_parse_lengths(&w, "64,64", &st));
    OK(workload_check(&w, &st));
    ck_assert_ptr_null(w.lengths);
    OK(workload_parse_lengths(&w, "64,63", &st));
    OK(workload_check(&w, &st));
    ck_assert_int_eq(w.lengths[1], 63);
    w.lengths[1] = 65; /* set by a caller, not parsed */
    FAILS(workload_check(&w, &st), STATUS_USAGE, "batch row 1 is 65");
}

/* lo and hi worked out by hand. */
static const struct {
    int seq_len, average;
    uint64_t seed;
    int lo, hi;
} draws[] = {{64, 32, 0, 1, 63}, {64, 33, 0, 2, 64}, {64, 64, 0, 64, 64},
             {64, 1, 7, 1, 1},   {64, 10, 1, 1, 19}, {100, 90, 4294967295, 80, 100},
             {1, 1, 3, 1, 1}};

TEST_LOOP(drawn_lengths_are_as_defined, 0, ARRAY_LEN(draws))
{
    enum { BATCH = 2000 };
    SCOPED_BY(workload_release) struct workload w = workload_sized(BATCH, draws[_i].seq_len);
    OK(workload_draw_lengths(&w, draws[_i].average, draws[_i].seed, &st));
    double sum = 0;
    int lo = draws[_i].lo, hi = draws[_i].hi, least = INT_MAX, most = 0;
    for (int b = 0; b < BATCH; b++) {
        int length = w.lengths[b];
        uint64_t drawn = splitmix64(draws[_i].seed * 4294967296u + (uint64_t)b);
        ck_assert_uint_eq((uint64_t)length, (uint64_t)lo + drawn % (uint64_t)(hi - lo + 1));
        sum += length;
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    ck_assert_int_eq(least, lo);
    ck_assert_int_eq(most, hi);
    ck_assert_double_eq_tol(sum / BATCH, draws[_i].average, (hi - lo) / 25.0 + 1e-9);
}

/* ---- copies ---------------------------------------------------------------------------------- */

TEST(copies_stand_alone)
{
    struct workload w = workload_sized(2, 100), copy;
    mask_spec_release(&w.mask_spec);
    OK(mask_parse("sliding", &w.mask_spec, &st));
    OK(workload_parse_lengths(&w, "50,99", &st));
    OK(workload_check(&w, &st));
    OK(workload_build_mask(&w, NULL, &st));
    int entries = w.blocks.start[w.blocks.lists * w.blocks.blocks];
    int64_t kept = w.blocks.kept;
    uint64_t last_word = w.blocks.words[w.blocks.bit_blocks * MASK_BLOCK - 64];

    workload_copy(&copy, &w);
    workload_release(&w);
    ck_assert_int_eq(copy.lengths[1], 99);
    ck_assert_ptr_null(copy.mask.bits);
    ck_assert_int_eq(copy.blocks.start[copy.blocks.lists * copy.blocks.blocks], entries);
    ck_assert_int_eq(copy.blocks.kept, kept);
    ck_assert_uint_eq(copy.blocks.words[copy.blocks.bit_blocks * MASK_BLOCK - 64], last_word);
    OK(workload_build_mask(&copy, NULL, &st)); /* again: replaces the first */
    ck_assert(mask_keep(&copy.mask, 0, 90, 80) && !mask_keep(&copy.mask, 0, 90, 79));
    ck_assert_int_eq(copy.blocks.kept, kept);
    workload_release(&copy);
    workload_release(NULL);
}

/* ---- kinds of layers ------------------------------------------------------------------------- */

/* Layers 0, 3 and 6 of 7 are full, the others local. */
TEST(layers_are_of_two_kinds)
{
    struct workload w = workload_sized(2, 100), copy;
    w.layers = 7;
    w.chain = chain_find("rope");
    w.rope_theta = 1000;
    OK(workload_parse_lengths(&w, "100,40", &st));
    OK(workload_add_local(&w, "sliding:w=1", 10, 3, &st));
    OK(workload_check(&w, &st));
    OK(workload_build_mask(&w, NULL, &st));
    const int64_t full = 100 * 100 + 40 * 40, local = 3 * 100 - 2 + 3 * 40 - 2;
    for (int layer = 0; layer < w.layers; layer++) {
        const struct workload *of = workload_of_layer(&w, layer);
        ck_assert_int_eq(layer_kind(&w, layer), layer % 3 != 0);
        ck_assert_int_eq(of->blocks.kept, layer % 3 != 0 ? local : full);
        ck_assert_double_eq(of->rope_theta, layer % 3 != 0 ? 10 : 1000);
        ck_assert_int_eq(of->lengths[1], 40);
    }
    ck_assert_int_eq(workload_kinds(&w), 2);
    ck_assert_int_eq(workload_global_layers(&w, 4), 2);
    ck_assert_double_eq_tol(workload_pairs(&w), (3.0 * (double)full + 4.0 * (double)local) / 7,
                            1e-9);
    workload_copy(&copy, &w);
    workload_release(&w);
    ck_assert_int_eq(copy.local->blocks.kept, local);
    copy.layers = 1; /* layer 0 is no local one */
    OK(workload_check(&copy, &st));
    ck_assert_ptr_null(copy.local);
    workload_release(&copy);
}

/* Segments that neither mask nor rotate compute the same in all layers. */
TEST(only_attention_knows_kinds)
{
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 8);
    OK(workload_add_local(&w, "causal", 0, 2, &st));
    OK(workload_check(&w, &st));
    ck_assert(!segment_has_kinds(&w, (struct segment){0, 1}));
    ck_assert(!segment_has_kinds(&w, (struct segment){6, 14}));
    for (int op = ATTENTION_FIRST; op <= 5; op++)
        ck_assert(segment_has_kinds(&w, (struct segment){(int8_t)op, (int8_t)op}));
    w.chain = chain_find("rope");
    w.rope_theta = w.local->rope_theta = 10;
    OK(workload_check(&w, &st));
    ck_assert(segment_has_kinds(&w, (struct segment){0, 1}));
    ck_assert(!segment_has_kinds(&w, (struct segment){0, 0}));
}

TEST(exported_libraries_number_functions_alike)
{
    static const struct {
        const char *chain;
        unsigned bits;
    } rows[] = {{"bert", 0},
                {"relu", 0},
                {"pre", ENCODER_PRE},
                {"rms", ENCODER_RMS},
                {"gate", ENCODER_GATE},
                {"rope", ENCODER_ROPE},
                {"bias", ENCODER_SCORE_BIAS}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct workload w = {.chain = chain_find(rows[i].chain)};
        ck_assert_uint_eq(workload_functions(&w), rows[i].bits);
    }
}

SUITE("workload", NULL, NULL)
