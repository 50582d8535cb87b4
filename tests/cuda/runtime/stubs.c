/* The kernels of a library for library.sh, which writes segments.inc: X(symbol, first, last), -1 of
 * a kernel that several segments share. */
#include "runtime.h"
#include "segment.h"

/* lengths.cu as C++ for one thread */
void encoder_clear_words(struct fp_clearing c);
void encoder_take_lengths(struct fp_lengths_chunk c);
void encoder_read_mask(struct fp_reading c);
void encoder_cut_lists(struct fp_cut_lists c);
void encoder_cut_tiles(struct fp_cut_tiles c);
void encoder_move_rows(struct fp_moving c);
void encoder_embed_rows(struct fp_embedding c);       /* embed.cu, likewise */
void encoder_normalise_rows(struct fp_normalising c); /* normalise.cu, likewise */
void encoder_quantise_rows(struct fp_quantising c);   /* quantise.cu, likewise */

static void clear_words(const struct stub *stub, void *argument)
{
    encoder_clear_words(*(struct fp_clearing *)argument);
}

static void take_lengths(const struct stub *stub, void *argument)
{
    encoder_take_lengths(*(struct fp_lengths_chunk *)argument);
}

static void read_mask(const struct stub *stub, void *argument)
{
    encoder_read_mask(*(struct fp_reading *)argument);
}

static void cut_lists(const struct stub *stub, void *argument)
{
    encoder_cut_lists(*(struct fp_cut_lists *)argument);
}

static void cut_tiles(const struct stub *stub, void *argument)
{
    encoder_cut_tiles(*(struct fp_cut_tiles *)argument);
}

static void move_rows(const struct stub *stub, void *argument)
{
    encoder_move_rows(*(struct fp_moving *)argument);
}

static void embed_rows(const struct stub *stub, void *argument)
{
    encoder_embed_rows(*(struct fp_embedding *)argument);
}

static void normalise_rows(const struct stub *stub, void *argument)
{
    encoder_normalise_rows(*(struct fp_normalising *)argument);
}

static void quantise_rows(const struct stub *stub, void *argument)
{
    encoder_quantise_rows(*(struct fp_quantising *)argument);
}

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
    {(const void *)encoder_move_rows, sizeof(struct fp_moving), move_rows, 0, 0},
    {(const void *)encoder_embed_rows, sizeof(struct fp_embedding), embed_rows, 0, 0},
    {(const void *)encoder_normalise_rows, sizeof(struct fp_normalising), normalise_rows, 0, 0},
    {(const void *)encoder_quantise_rows, sizeof(struct fp_quantising), quantise_rows, 0, 0},
};
const int stub_count = sizeof(stubs) / sizeof(stubs[0]);
