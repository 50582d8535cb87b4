/* picture.c: pictures of a mask, which show batch row 0 as a square of cells, each a block of
 * (query, key) pairs. */
#pragma once

#include "cmd/cmd.h"

/* Appends a picture as text, a cell a character: '#' all pairs kept, '+' some, '.' none. */
void picture_text(const struct workload *w, struct buf *out);

/* Prints what the picture's cells and marks mean. */
void picture_legend(const struct workload *w);

/* Appends a picture as SVG, with more cells: the darker the more of a cell's pairs are kept.  The
 * blocks of the mask's cover, if it has one, stand beside it. */
void picture_svg(const struct workload *w, struct buf *out);

enum { PICTURE_CELLS = 256, PICTURE_SHADES = 8 };

/* Paths of SVG, which `mask --svg` and the page of `report` draw.  In units of a cell: shades[i]
 * has the cells of which about i + 1 of PICTURE_SHADES parts are kept.  In units of a block: the
 * 64x64 blocks that are kept whole and in part; empty if there are more than PICTURE_CELLS in a
 * row. */
struct picture {
    int cells; /* in a row */
    struct buf shades[PICTURE_SHADES], full, partial;
};
void picture_init(const struct workload *w, struct picture *p);
void picture_release(struct picture *p);
