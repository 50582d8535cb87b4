/* Shared by the files that print rows. */
#pragma once

#include "cmd/cmd.h"

/* ---- output_table.c: cells, and rows that were kept ------------------------------------------ */

enum { DECIMALS_ALL = -1 }; /* a program's form */
enum { JSON_DIGITS = 9 };   /* more than a clock resolves */

/* The value at the path that a column's key is; null: there is none. */
const json_t *row_member(const json_t *row, const char *key);

/* Appends a value.  decimals: of reals, or one of the constants.  none: stands for null and for
 * empty text. */
void cell_add(const json_t *value, int decimals, const char *none, struct buf *out);

void table_print(const struct output *out);
void table_print_markdown(const struct output *out); /* as GitHub reads it */
