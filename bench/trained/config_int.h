/* A model's config.json: its fields, and those that no workload can say. */
#pragma once

#include "bench/trained/trained.h"

#include <jansson.h>

enum { NAMES_MOST = 8 };

/* Fields are taken away once they are read, if config_check() would refuse them. */
struct config {
    const char *path;
    json_t *fields;
    struct status *st;
};

/* Functions that fail set the status, with the file's name, and return -1. */
int config_refuse(const struct config *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int config_refuse_missing(const struct config *c, const char *const names[NAMES_MOST]);
int config_refuse_field(const struct config *c, const char *name, const json_t *value);

/* A field by any of its names; null: it is not there, or null.  *name is the one found, or the
 * first. */
const json_t *config_field(const json_t *fields, const char *const names[NAMES_MOST],
                           const char **name);

/* otherwise 0: the field must be there. */
int config_size(const struct config *c, const char *const names[NAMES_MOST], int otherwise,
                int *out);
int config_number(const struct config *c, const json_t *fields, const char *const names[NAMES_MOST],
                  double *out);

bool config_is_true(const struct config *c, const char *name);
bool config_is_text(const struct config *c, const char *name, const char *text);
bool config_is_nothing(const json_t *value); /* not there, null, false, 0 or empty */

/* ---- config_kinds.c -------------------------------------------------------------------------- */

/* ModernBERT's two kinds of layers, with the base of each: takes their fields away.  out->layers is
 * set. */
int config_kinds(const struct config *c, struct model_config *out);

/* ---- config_fields.c ------------------------------------------------------------------------- */

/* What layers of a model_type have that no chain computes; null: nothing is known of it. */
const char *config_unfit(const struct config *c, const char *type);

/* Refuses fields that change what layers compute. */
int config_check(const struct config *c);
