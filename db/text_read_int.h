/* Reading the text form of results. */
#pragma once

#include "db/text_int.h"

#include <jansson.h>

/* ---- text_read.c: lines and their members ---------------------------------------------------- */

struct text_reader {
    const char *path; /* for messages */
    FILE *in;
    struct buf text; /* that is read, if it is in memory */
    int64_t bytes;   /* to read; 0: unknown */
    bool standard;   /* standard input, which stays open */
    bool database;   /* the text of a database at path: what is wrong is damage of that */
    struct buf only; /* "text": and a workload's text, in JSON: lines of others are passed over */
    struct buf studies; /* how lines of its studies begin, one behind the other */
    char *line;         /* the last one read, owned */
    size_t size;
    int number; /* of the line, from 1 */
};

/* path "-": standard input.  Close *r in any case. */
int text_open(struct text_reader *r, const char *path, struct status *st);
void text_close(struct text_reader *r);

/* The next line that is no header, as JSON that the caller releases; 1, 0 at the end of the file,
 * or -1. */
int text_next(struct text_reader *r, json_t **out, struct status *st);

/* Reports what is wrong with the line; returns -1. */
int text_fail(const struct text_reader *r, struct status *st, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Reads the members of `from` that a table lists.  The texts live as long as `from`.  also: names
 * of further members, each with a blank behind it; any other is refused. */
int text_read_fields(const struct text_reader *r, json_t *from, const struct text_table *t,
                     const char *also, void *out, struct status *st);

/* ---- import.c -------------------------------------------------------------------------------- */

/* Stores the results of a text.  Within the caller's transaction. */
int import_text(struct db *db, struct text_reader *from, struct db_moved *moved, struct status *st);
