/* What the files of recorded spaces share. */
#ifndef FUSEPLAN_SEARCH_SPACE_INT_H
#define FUSEPLAN_SEARCH_SPACE_INT_H

#include "search/space.h"

/* ---- gzip.c: packed bytes -------------------------------------------------------------------- */

/* Appends the packed bytes.  Equal data gives equal bytes: they hold no name and no time. */
void gzip_pack(const void *data, size_t len, struct buf *out);

/* Appends the unpacked bytes.  STATUS_USAGE if data is damaged or they exceed max_bytes. */
int gzip_unpack(const void *data, size_t len, size_t max_bytes, struct buf *out, struct status *st);

/* ---- space_write.c, space_read.c: what both know of the format ------------------------------- */

#define SPACE_FORMAT "fuseplan space"
enum {
    SPACE_VERSION = 2,   /* that is written */
    SPACE_VERSION_1 = 1, /* read too: each segment's fastest choice, and no seconds */
    ATTEMPTS_MAX = 1 << 14
};

/* Where a plan's line has its time. */
size_t space_us_at(const struct recorded_space *s);

/* Fills a space that space.c has initialised from the lines of a file. */
int space_parse(const char *text, struct recorded_space *out, struct status *st);

/* ---- space.c --------------------------------------------------------------------------------- */

/* Whether a plan has a segment that failed alone.  One that was not recorded counts as failing, so
 * that it is never proposed. */
bool recorded_space_fails(const struct recorded_space *s, struct plan p);

/* ---- space_workload.c ------------------------------------------------------------------------ */

/* Reads the workload of a header, without the bits of its mask, and the kind of its target. */
int space_workload(const struct recorded_space *s, enum target_kind *kind, struct workload *out,
                   struct status *st);

#endif
