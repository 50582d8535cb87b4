/* The kernels of a library for build.sh, which puts segments.inc here: X(symbol, first, last);
 * first is -1 of a kernel that several segments share, -2 of one that merges heads, too. */
#include "runtime.h"
#include "segment.h"

/* A kernel as C++ for one thread. */
#define KERNEL(name, type)                                                                         \
    void encoder_##name(struct type c);                                                            \
    static void name(const struct stub *stub, void *argument)                                      \
    {                                                                                              \
        (void)stub;                                                                                \
        encoder_##name(*(struct type *)argument);                                                  \
    }
KERNEL(clear_words, fp_clearing) /* of lengths.cu */
KERNEL(take_lengths, fp_lengths_chunk)
KERNEL(read_mask, fp_reading)
KERNEL(cut_lists, fp_cut_lists)
KERNEL(cut_tiles, fp_cut_tiles)
KERNEL(join_tiles, fp_join_tiles)
KERNEL(move_rows, fp_moving)
KERNEL(embed_rows, fp_embedding) /* of the file of its verb, as all below */
KERNEL(normalise_rows, fp_normalising)
KERNEL(quantise_rows, fp_quantising)

#define X(symbol, first, last)                                                                     \
    void symbol(void);                                                                             \
    void symbol(void)                                                                              \
    {                                                                                              \
    }
#include "segments.inc"
#undef X

#define X(symbol, first, last)                                                                     \
    {(const void *)symbol, sizeof(struct fp_args), run_segment, first, last},
const struct stub stubs[] = {
#include "segments.inc"
    {(const void *)encoder_clear_words, sizeof(struct fp_clearing), clear_words, 0, 0},
    {(const void *)encoder_take_lengths, sizeof(struct fp_lengths_chunk), take_lengths, 0, 0},
    {(const void *)encoder_read_mask, sizeof(struct fp_reading), read_mask, 0, 0},
    {(const void *)encoder_cut_lists, sizeof(struct fp_cut_lists), cut_lists, 0, 0},
    {(const void *)encoder_cut_tiles, sizeof(struct fp_cut_tiles), cut_tiles, 0, 0},
    {(const void *)encoder_join_tiles, sizeof(struct fp_join_tiles), join_tiles, 0, 0},
    {(const void *)encoder_move_rows, sizeof(struct fp_moving), move_rows, 0, 0},
    {(const void *)encoder_embed_rows, sizeof(struct fp_embedding), embed_rows, 0, 0},
    {(const void *)encoder_normalise_rows, sizeof(struct fp_normalising), normalise_rows, 0, 0},
    {(const void *)encoder_quantise_rows, sizeof(struct fp_quantising), quantise_rows, 0, 0},
};
const int stub_count = sizeof(stubs) / sizeof(stubs[0]);
