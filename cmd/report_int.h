/* What the files of the command `report` share. */
#pragma once

#include "cmd/cmd.h"

/* What a page is about. */
struct reported {
    struct db *db;
    int64_t study;
    enum target_kind target;
    const struct workload *workload; /* its mask is built, unless `drawn` is false */
    bool drawn;
    const char *options; /* that name the workload on a command line */
    struct db_best best;
    struct slot_record slots[SLOT_COUNT];
    struct segment_times times; /* of the slots */
};

/* ---- report_plans.c -------------------------------------------------------------------------- */

/* Adds every plan tried, in the order of the trials: an array for each figure. */
int report_plans_add(const struct reported *r, json_t *data, struct status *st);

/* ---- report_data.c --------------------------------------------------------------------------- */

/* All that the page shows. */
int report_data_json(struct reported *r, json_t **out, struct status *st);

/* ---- report_page.c --------------------------------------------------------------------------- */

/* Appends the page: cmd/page/report.html with the files and the data that its marks ask for.
 * pages: the data of each workload. */
void report_page(const json_t *pages, struct buf *out);
