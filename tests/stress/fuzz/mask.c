/* The name and parameters of a mask, and the mask, its block lists and its cover that they give.
 * The first byte is the sequence length, the second the batch and whether rows have lengths. */
#include "layer/layer.h"
#include "tests/stress/fuzz/fuzz.h"

enum { SEQ_LEN_MOST = 160, BATCH_MOST = 3 };

static int64_t count_kept(const struct workload *w)
{
    int64_t kept = 0;
    for (int b = 0; b < w->batch; b++) {
        int length = w->lengths != NULL ? w->lengths[b] : w->seq_len;
        for (int i = 0; i < length; i++)
            for (int j = 0; j < length; j++)
                kept += mask_keep(&w->mask, b, i, j);
    }
    return kept;
}

static void check_built(struct workload *w)
{
    struct status st = STATUS_INIT;
    SCOPED_BY(mask_spec_release) struct mask_spec again;
    SCOPED_BUF text = BUF_INIT;
    fuzz_require(workload_build_mask(w, NULL, &st) == 0, "a mask that was resolved can be built");
    fuzz_require(w->blocks.kept == count_kept(w), "the block lists hold what the mask keeps");
    int64_t covered = 0;
    for (int i = 0; i < w->cover.parts; i++)
        covered += w->cover.part[i].blocks.kept;
    fuzz_require(w->cover.parts == 0 || covered == w->blocks.kept, "so does the cover");
    mask_text(&w->mask_spec, &text);
    fuzz_require(mask_parse(text.ptr, &again, &st) == 0 &&
                     memcmp(again.param, w->mask_spec.param, sizeof(again.param)) == 0,
                 "a mask's text reads as the same mask");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workload w;
    struct status st = STATUS_INIT;
    if (size < 2)
        return 0;
    SCOPED char *text = fuzz_text(data + 2, size - 2);
    workload_init(&w);
    mask_spec_release(&w.mask_spec);
    w.seq_len = 1 + data[0] % SEQ_LEN_MOST;
    w.batch = 1 + data[1] % BATCH_MOST;
    if (data[1] >= 128)
        workload_draw_lengths(&w, 1 + w.seq_len / 2, data[1], &st);
    if (mask_parse(text, &w.mask_spec, &st) == 0 && w.mask_spec.path == NULL &&
        workload_check(&w, &st) == 0)
        check_built(&w);
    workload_release(&w);
    return 0;
}
