/* Choices and launches of hopper_gemm. */
#include "codegen/codegen.h"
#include "kernels/cuda/abi.h"
#include "tests/candidate.h"
#include "tests/workload.h"

static struct choice choice_of(struct segment s, const char *schedule)
{
    struct choice c = {
        .chain = &chain_bert, .segment = s, .impl = impl_find(TARGET_CUDA, "hopper_gemm")};
    OK(schedule_parse(c.impl, schedule, &c.schedule, &st));
    return c;
}

static struct build_target hopper_of(const struct workload *w)
{
    return (struct build_target){HOPPER_FP16, .workload = w};
}

static const struct {
    struct segment segment;
    const char *schedule;
    int threads, tiles;
    bool persistent;
    int cluster, words; /* words: of mailboxes */
} launches[] = {
    {{0, 0}, "", 384, 2 * 2, true, 0, 0},                   /* 195 / 128 by 384 / 192 */
    {{10, 11}, "tile=64x64 split=4", 256, 48, false, 0, 0}, /* 195 / 64 by 136 / 64, four parts */
    {{7, 9}, "tile=16x128_swap norm=memory", 384, 13, true, 0, 13 * 16 * 2}, /* 195 / 16 by 128 /
                                                                                128 */
    {{10, 11}, "tile=128x192_cooperative", 384, 2, true, 0, 0}, /* 195 / 128 by 136 / 192 */
    {{0, 0}, "tile=64x96_cluster2x1", 384, 4 * 4, true, 2, 0},  /* 195 / 128 by 384 / 96, of two */
    {{12, 14}, "tile=64x64", 384, 8, true, 2, 0},               /* 195 / 64 by 128 / 64 */
    {{7, 9}, "tile=64x64 norm=memory", 384, 8, true, 2, 4 * 2 * 2 * 64 * 2},
    {{7, 9}, "tile=192x128 norm=memory", 512, 2, true, 0, 2 * 192 * 2}, /* a tile has whole rows */
    {{0, 1}, "tile=96x192_swap_pingpong", 384, 3 * 2, true, 0, 0},      /* 195 / 96 by 384 / 192 */
    {{12, 14}, "tile=64x64 split=4 norm=memory", 256, 32, false, 0, 4 * 2 * 2 * 64 * 2},
    {{0, 1}, "tile=128x192_kept e4m3=qkv", 384, 2 * 2, true, 0, 0},
};

TEST_LOOP(tiles_of_a_launch, 0, ARRAY_LEN(launches))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of(launches[_i].segment, launches[_i].schedule);
    struct cuda_launch l;
    choice_launch(&c, &w, &l);
    ck_assert_int_eq(l.threads, launches[_i].threads);
    ck_assert_int_eq(l.tiles, launches[_i].tiles);
    ck_assert_int_eq(l.persistent, launches[_i].persistent);
    ck_assert_int_eq(l.at_once, !l.persistent && launches[_i].words > 0);
    ck_assert_int_eq(l.cluster, launches[_i].cluster);
    ck_assert_int_eq(l.sync_words, FP_SYNC_TILES + launches[_i].words);
    ck_assert_int_eq(l.workspace_bytes, 0);
    ck_assert(!l.cooperative);
}

/* Heads of 64; whether there is a tile whose cluster makes up a row. */
static const struct {
    int heads;
    bool any;
} clusters[] = {{12, true}, {16, true}, {3, true}, {17, false}};

TEST_LOOP(clusters_have_whole_rows, 0, ARRAY_LEN(clusters))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of((struct segment){7, 9}, "");
    const struct knob *tile = &c.impl->knobs[0];
    const struct build_target t = hopper_of(&w);
    const char *why;
    bool any = false;
    w.heads = clusters[_i].heads;
    for (int pick = 0; pick < tile->count; pick++) {
        struct cuda_launch l;
        int rows, columns;
        c.schedule.pick[0] = (int8_t)pick;
        if (!choice_applicable(&c, &t, &why))
            continue;
        any = true;
        choice_launch(&c, &w, &l);
        ck_assert_int_eq(sscanf(tile->labels[pick], "%dx%d", &rows, &columns), 2);
        ck_assert_int_eq(l.cluster * columns, w.heads * 64);
        ck_assert(l.cluster >= 2 && l.cluster <= 8);
    }
    ck_assert_int_eq(any, clusters[_i].any);
}

/* 16 rows by 128 of 384 columns: 3 * 2^18 tiles of so many rows, and 3 * 2^19. */
TEST_LOOP(places_of_tiles_are_found, 0, 2)
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of((struct segment){0, 0}, "tile=16x128_swap");
    const struct build_target t = hopper_of(&w);
    const char *why;
    w.batch = 64 << _i;
    w.seq_len = 65536;
    ck_assert_int_eq(choice_applicable(&c, &t, &why), _i == 0);
    if (_i > 0)
        ck_assert_str_eq(why, "the kernel finds the places of less than 2^20 tiles");
}

/* Thread blocks that wait for each other must all fit; so many of 64 rows and 64 columns, split.
 * Launches are laid out for all rows, those of padding too. */
static const struct {
    int batch, seq_len, split;
    int lengths[2]; /* 0: none */
    bool fits;
} waits[] = {{1, 128, 4, {0}, true},
             {1, 129, 4, {0}, false},
             {1, 256, 2, {0}, true},
             {1, 257, 2, {0}, false},
             {2, 128, 4, {64, 64}, false}};

TEST_LOOP(the_norm_of_a_split_is_for_few_rows, 0, ARRAY_LEN(waits))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    SCOPED_BUF schedule = BUF_INIT;
    const char *why;
    int lengths[] = {waits[_i].lengths[0], waits[_i].lengths[1]};
    w.batch = waits[_i].batch, w.lengths = lengths[0] > 0 ? lengths : NULL;
    w.heads = 12, w.seq_len = waits[_i].seq_len;
    const struct build_target t = hopper_of(&w);
    buf_addf(&schedule, "tile=64x64 split=%d norm=memory", waits[_i].split);
    struct choice c = choice_of((struct segment){12, 14}, schedule.ptr);
    ck_assert_int_eq(choice_applicable(&c, &t, &why), waits[_i].fits);
    if (!waits[_i].fits)
        ck_assert_ptr_nonnull(strstr(why, "does not hold all thread blocks at once"));
}

/* Heads of 64; what a thread block keeps: 768 rows of the weight at most, of 16 tiles side by side.
 */
static const struct {
    struct segment segment;
    const char *schedule;
    int heads, ffn;
    const char *why; /* null: it runs */
} kept[] = {{{0, 0}, " e4m3=qkv", 12, 3072, NULL},
            {{0, 1}, " e4m3=qkv", 12, 3072, NULL},
            {{10, 11}, " e4m3=ffn1+ffn2", 12, 3072, NULL},
            {{10, 11}, " e4m3=ffn1+ffn2", 12, 3088, "too few multiprocessors"},
            {{0, 0}, " e4m3=qkv", 13, 3072, "no room for so many rows"},
            {{12, 12}, " e4m3=ffn2", 12, 768, NULL},
            {{12, 12}, " e4m3=ffn2", 12, 784, "no room for so many rows"},
            {{0, 0}, "", 12, 3072, "a weight of e4m3"},
            {{7, 8}, " e4m3=out", 12, 3072, "nothing else has room"},
            {{7, 9}, " norm=memory e4m3=out", 12, 3072, "nothing else has room"}};

TEST_LOOP(weights_stay_where_they_fit, 0, ARRAY_LEN(kept))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    SCOPED_BUF schedule = BUF_INIT;
    const struct build_target t = hopper_of(&w);
    const char *why = "";
    struct cuda_launch l;
    w.heads = kept[_i].heads, w.ffn = kept[_i].ffn;
    buf_addf(&schedule, "tile=128x192_kept%s", kept[_i].schedule);
    struct choice c = choice_of(kept[_i].segment, schedule.ptr);
    ck_assert_int_eq(choice_applicable(&c, &t, &why), kept[_i].why == NULL);
    if (kept[_i].why != NULL) {
        ck_assert_ptr_nonnull(strstr(why, kept[_i].why));
        return;
    }
    choice_launch(&c, &w, &l);
    /* Six steps of the weight, four of the input, a place for each of eight warps to store from. */
    ck_assert_int_eq(l.shared_bytes / 1024, 1 + 6 * 24 + 4 * 16 + 8 * 2);
}

/* What TMA copies, for fp_maps: in, weight, out, residual, sum, and the result in e4m3. */
static const struct {
    struct segment segment;
    const char *schedule;
    struct cuda_map maps[CUDA_MAPS];
} described[] = {
    {{10, 11},
     "",
     {{false, TENSOR_OF(9), {128, 195}, {64, 128}, false},
      {true, WEIGHT_W1, {136, 128}, {64, 64}, false},
      {false, TENSOR_OF(11), {136, 195}, {64, 16}, false},
      {0}}},
    {{12, 13},
     "tile=64x96_cluster2x1",
     {{false, TENSOR_OF(11), {136, 195}, {64, 64}, false},
      {true, WEIGHT_W2, {128, 136}, {32, 64}, false},
      {false, TENSOR_OF(13), {128, 195}, {32, 16}, false},
      {false, TENSOR_OF(9), {128, 195}, {32, 64}, false}}},
    {{7, 8},
     "tile=16x128_swap",
     {{false, TENSOR_OF(6), {128, 195}, {64, 16}, false},
      {true, WEIGHT_WO, {128, 128}, {64, 128}, false},
      {false, TENSOR_OF(8), {128, 195}, {64, 16}, false},
      {false, TENSOR_X, {128, 195}, {64, 16}, false}}},
    /* Merged heads, heads to split, sums of a cluster. */
    {{6, 7},
     "",
     {{0},
      {true, WEIGHT_WO, {128, 128}, {64, 64}, false},
      {false, TENSOR_OF(7), {128, 195}, {64, 16}, false},
      {0}}},
    {{0, 1},
     "",
     {{false, TENSOR_X, {128, 195}, {64, 128}, false},
      {true, WEIGHT_WQKV, {384, 128}, {64, 64}, false},
      {0},
      {0}}},
    {{12, 13},
     "tile=64x64 split=2",
     {{false, TENSOR_OF(11), {136, 195}, {64, 64}, false},
      {true, WEIGHT_W2, {128, 136}, {64, 128}, false},
      {0},
      {0}}},
    /* e4m3: the weight is (N,K), and lines have as many bytes. */
    {{10, 11},
     "e4m3=ffn1+ffn2",
     {{false, TENSOR_OF(9), {128, 195}, {128, 128}, true},
      {true, WEIGHT_W1, {128, 136}, {128, 192}, true},
      {0},
      {0},
      {0},
      {false, TENSOR_OF(11), {136, 195}, {64, 16}, true}}},
    {{12, 14},
     "tile=64x64 e4m3=qkv+ffn2",
     {{false, TENSOR_OF(11), {136, 195}, {128, 64}, true},
      {true, WEIGHT_W2, {136, 128}, {128, 64}, true},
      {false, TENSOR_OF(14), {128, 195}, {64, 16}, false},
      {false, TENSOR_OF(9), {128, 195}, {64, 64}, false},
      {0},
      {false, TENSOR_OF(14), {128, 195}, {64, 16}, true}}},
    {{12, 14}, /* threads store what a cluster has summed */
     "tile=64x64 split=4 norm=memory e4m3=qkv+ffn2",
     {{false, TENSOR_OF(11), {136, 195}, {128, 64}, true},
      {true, WEIGHT_W2, {136, 128}, {128, 64}, true}}},
    {{0, 1},
     "e4m3=qkv",
     {{false, TENSOR_X, {128, 195}, {128, 128}, true},
      {true, WEIGHT_WQKV, {128, 384}, {128, 192}, true}}},
};

TEST_LOOP(maps_of_a_launch, 0, ARRAY_LEN(described))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of(described[_i].segment, described[_i].schedule);
    struct cuda_launch l;
    choice_launch(&c, &w, &l);
    for (int i = 0; i < CUDA_MAPS; i++) {
        const struct cuda_map *m = &l.maps[i], *want = &described[_i].maps[i];
        ck_assert_int_eq(m->weight, want->weight);
        ck_assert_int_eq(m->index, want->index);
        ck_assert_int_eq(m->e4m3, want->e4m3);
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(m->size[k], want->size[k]);
            ck_assert_int_eq(m->box[k], want->box[k]);
        }
    }
}

/* A chain that normalises before stores what the norm is of, too: by TMA where it stores by TMA. */
TEST_LOOP(sums_beside_norms, 0, 3)
{
    static const char *const schedules[] = {"tile=64x64", "tile=16x128_swap norm=memory",
                                            "tile=64x64 split=2 norm=memory"};
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of((struct segment){7, 9}, schedules[_i]);
    const struct cuda_map *sum, *out;
    struct cuda_launch l;
    ck_assert_uint_eq(choice_tensors(&c), SET_OF(TENSOR_OF(9)));
    c.chain = w.chain = chain_find("pre");
    ck_assert_uint_eq(choice_tensors(&c), SET_OF(TENSOR_OF(8)) | SET_OF(TENSOR_OF(9)));
    choice_launch(&c, &w, &l);
    sum = &l.maps[CUDA_MAP_SUM], out = &l.maps[CUDA_MAP_OUT];
    ck_assert_int_eq(sum->index, TENSOR_OF(8));
    ck_assert_int_eq(out->size[0], _i < 2 ? 128 : 0);
    ck_assert_mem_eq(sum->size, out->size, sizeof(out->size));
    ck_assert_mem_eq(sum->box, out->box, sizeof(out->box));
}

static const struct {
    const char *schedule;
    bool applicable;
} gates[] = {{"", true},
             {"tile=128x256", true},
             {"tile=64x64", true},
             {"tile=64x96", false},
             {"tile=64x64 split=2", false},
             {"tile=96x128_swap", false},
             {"tile=64x64 e4m3=ffn2", true}};

/* A gate stores F of 2F columns. */
TEST_LOOP(gates_store_half_the_columns, 0, ARRAY_LEN(gates))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of((struct segment){10, 11}, gates[_i].schedule);
    struct build_target t = hopper_of(&w);
    const char *why = "";
    w.ffn = 144;
    c.chain = t.chain = w.chain = chain_find("silu+gate");
    ck_assert_int_eq(choice_applicable(&c, &t, &why), gates[_i].applicable);
    if (!gates[_i].applicable) {
        ck_assert_ptr_nonnull(strstr(why, "a gate"));
        return;
    }
    struct cuda_launch l;
    choice_launch(&c, &w, &l);
    const int out = c.schedule.precision != 0 ? CUDA_MAP_E4M3 : CUDA_MAP_OUT;
    ck_assert_int_eq(l.operands.columns, 288);
    ck_assert_int_eq(l.maps[CUDA_MAP_WEIGHT].size[0], 288);
    ck_assert_int_eq(l.maps[CUDA_MAP_WEIGHT].box[0], 64);
    ck_assert_int_eq(l.maps[out].size[0], 144);
    ck_assert_int_eq(l.maps[out].box[0], 32);
}

static const struct {
    int head_size;
    const char *schedule;
    bool applicable;
} turned[] = {{64, "", true},
              {64, "tile=64x96", false},
              {64, "tile=64x64 split=4", true},
              {64, "tile=16x128_swap", true},
              {128, "", false},
              {128, "tile=128x128", true},
              {32, "tile=64x96", true},
              {32, "tile=64x96_cluster2x1", true},
              {64, "tile=96x192_swap_pingpong", true},
              {48, "tile=64x96", true},
              {48, "tile=64x64", false},
              {48, "tile=96x192_swap_pingpong", true},
              {96, "tile=64x96_cluster2x1", true},
              {96, "tile=96x192_swap_pingpong", true},
              {96, "tile=128x128", false},
              {24, "tile=64x96", false}};

/* The tile of a thread block has both columns of each pair. */
TEST_LOOP(heads_that_are_turned_are_whole, 0, ARRAY_LEN(turned))
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct choice c = choice_of((struct segment){0, 1}, turned[_i].schedule);
    struct build_target t = hopper_of(&w);
    const char *why = "";
    SCOPED_BUF text = BUF_INIT;
    t.head_size = w.head_size = turned[_i].head_size;
    ck_assert(choice_applicable(&c, &t, &why));
    c.chain = t.chain = w.chain = chain_find("rope");
    ck_assert_int_eq(choice_applicable(&c, &t, &why), turned[_i].applicable);
    if (!turned[_i].applicable) {
        ck_assert_ptr_nonnull(strstr(why, "tiles of whole heads"));
        return;
    }
    choice_emit(&c, &t, &text);
    ck_assert_ptr_nonnull(strstr(text.ptr, "fp::store_turned_qkv<dtype, W>"));
    ck_assert_ptr_nonnull(strstr(text.ptr, "fp::table(a, 12)"));
}

SUITE("hopper_gemm", NULL, NULL)
