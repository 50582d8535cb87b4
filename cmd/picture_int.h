/* A picture of a mask as paths, which `mask --svg` and the page of `report` draw. */
#ifndef FUSEPLAN_CMD_PICTURE_INT_H
#define FUSEPLAN_CMD_PICTURE_INT_H

#include "cmd/cmd.h"

enum { PICTURE_CELLS = 256, PICTURE_SHADES = 8 };

/* Paths of SVG.  In units of a cell: shades[i] has the cells of which about i + 1 of PICTURE_SHADES
 * parts are kept.  In units of a block: the 64x64 blocks that are kept whole and in part; empty if
 * there are more than PICTURE_CELLS in a row. */
struct picture {
    int cells; /* in a row */
    struct buf shades[PICTURE_SHADES], full, partial;
};
void picture_init(const struct workload *w, struct picture *p);
void picture_release(struct picture *p);

#endif
