/* The text form of results: docs/database.md describes it.  The tables of fields make writers and
 * readers of texts and of rows agree. */
#pragma once

#include "db/db_int.h"

#define TEXT_HEADER  "{\"format\":\"fuseplan results\",\"version\":1}"
#define TEXT_FORMAT  "fuseplan results"
#define TEXT_VERSION 1

/* ---- text_fields.c: the members of a line ---------------------------------------------------- */

enum text_type {
    TEXT_STRING,   /* const char *; left out if empty */
    TEXT_REQUIRED, /* const char *; never left out, may be empty */
    TEXT_UTC,      /* const char *; "2026-01-31T12:34:56.789Z" */
    TEXT_REAL, /* double; left out if NaN, null if infinite; what the column of its name takes */
    TEXT_INT,  /* int */
    TEXT_BITS, /* int; left out if 0 */
    TEXT_SIZE  /* int64_t; or uint64_t, a signed number in texts and in the database */
};

struct text_field {
    const char *name;
    enum text_type type;
    size_t offset; /* in the struct that the table describes */
};

struct text_table {
    const struct text_field *fields;
    size_t count;
};
extern const struct text_table text_inputs;   /* of struct db_workload */
extern const struct text_table text_workload; /* of struct db_workload */
extern const struct text_table text_target;   /* of struct db_target */
extern const struct text_table text_study;    /* of struct db_listed, without the three above */
extern const struct text_table text_search;   /* of struct db_search, without its id */
extern const struct text_table text_trial; /* of struct db_trial, without what text_write.c adds */

/* The columns of a row from `column` on, or the next parameters of a statement: one for each field,
 * in the order of the table.  What is absent is empty, NaN or 0. */
void text_fields_read(const struct query *q, int column, const struct text_table *t, void *out);
void text_fields_bind(struct query *q, const struct text_table *t, const void *in);
