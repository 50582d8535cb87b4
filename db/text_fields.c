#include "db/text_int.h"

#define IN(type, member) offsetof(struct type, member)
#define TABLE(fields)                                                                              \
    {                                                                                              \
        fields, ARRAY_LEN(fields)                                                                  \
    }

static const struct text_field inputs[] = {
    {"init", TEXT_REQUIRED, IN(db_workload, init)},
    {"seed", TEXT_SIZE, IN(db_workload, seed)},
};
const struct text_table text_inputs = TABLE(inputs);

static const struct text_field workload[] = {
    {"text", TEXT_REQUIRED, IN(db_workload, text)},
    {"batch", TEXT_SIZE, IN(db_workload, batch)},
    {"seq_len", TEXT_SIZE, IN(db_workload, seq_len)},
    {"mask", TEXT_REQUIRED, IN(db_workload, mask)},
    {"heads", TEXT_SIZE, IN(db_workload, heads)},
    {"head_size", TEXT_SIZE, IN(db_workload, head_size)},
    {"ffn", TEXT_SIZE, IN(db_workload, ffn)},
    {"layers", TEXT_SIZE, IN(db_workload, layers)},
    {"eps", TEXT_REAL, IN(db_workload, eps)},
    {"dtype", TEXT_REQUIRED, IN(db_workload, dtype)},
    {"lengths", TEXT_REQUIRED, IN(db_workload, lengths)},
    {"chain", TEXT_STRING, IN(db_workload, chain)},
};
const struct text_table text_workload = TABLE(workload);

static const struct text_field target[] = {
    {"kind", TEXT_REQUIRED, IN(db_target, kind)},
    {"device", TEXT_REQUIRED, IN(db_target, device)},
    {"uuid", TEXT_REQUIRED, IN(db_target, uuid)},
    {"capability", TEXT_REQUIRED, IN(db_target, capability)},
    {"units", TEXT_SIZE, IN(db_target, units)},
    {"driver", TEXT_REQUIRED, IN(db_target, driver)},
    {"compiler", TEXT_REQUIRED, IN(db_target, compiler)},
    {"libraries", TEXT_REQUIRED, IN(db_target, libraries)},
};
const struct text_table text_target = TABLE(target);

static const struct text_field study[] = {
    {"protocol", TEXT_REQUIRED, IN(db_listed, protocol)},
    {"created_utc", TEXT_UTC, IN(db_listed, created_utc)},
};
const struct text_table text_study = TABLE(study);

static const struct text_field search[] = {
    {"strategy", TEXT_REQUIRED, IN(db_search, strategy)},
    {"options", TEXT_REQUIRED, IN(db_search, options)},
    {"started_utc", TEXT_UTC, IN(db_search, started_utc)},
    {"ended_utc", TEXT_STRING, IN(db_search, ended_utc)},
    {"stopped_by", TEXT_STRING, IN(db_search, stopped_by)},
};
const struct text_table text_search = TABLE(search);

static const struct text_field trial[] = {
    {"comparison", TEXT_STRING, IN(db_trial, comparison)},
    {"packed", TEXT_BITS, IN(db_trial, packed)},
    {"precision", TEXT_BITS, IN(db_trial, precision)},
    {"stored_utc", TEXT_UTC, IN(db_trial, stored_utc)},
    {"reason_code", TEXT_STRING, IN(db_trial, reason_code)},
    {"reason", TEXT_STRING, IN(db_trial, reason)},
    {"median_ms", TEXT_REAL, IN(db_trial, median_ms)},
    {"ci_low_ms", TEXT_REAL, IN(db_trial, ci_low_ms)},
    {"ci_high_ms", TEXT_REAL, IN(db_trial, ci_high_ms)},
    {"sample_count", TEXT_INT, IN(db_trial, sample_count)},
    {"layers_timed", TEXT_INT, IN(db_trial, layers_timed)},
    {"relative_error", TEXT_REAL, IN(db_trial, error)},
    {"build_s", TEXT_REAL, IN(db_trial, build_s)},
    {"verify_s", TEXT_REAL, IN(db_trial, verify_s)},
    {"time_s", TEXT_REAL, IN(db_trial, time_s)},
    {"search", TEXT_STRING, IN(db_trial, search)},
    {"resources", TEXT_STRING, IN(db_trial, resources)},
    {"conditions", TEXT_STRING, IN(db_trial, conditions)},
};
const struct text_table text_trial = TABLE(trial);

void text_fields_read(const struct query *q, int column, const struct text_table *t, void *out)
{
    for (size_t i = 0; i < t->count; i++, column++) {
        void *at = (char *)out + t->fields[i].offset;
        switch (t->fields[i].type) {
        case TEXT_STRING:
        case TEXT_REQUIRED:
        case TEXT_UTC:
            *(const char **)at = column_text(q, column);
            break;
        case TEXT_REAL:
            *(double *)at = column_real(q, column);
            break;
        case TEXT_BITS:
        case TEXT_INT:
            *(int *)at = (int)column_int(q, column);
            break;
        case TEXT_SIZE:
            *(int64_t *)at = column_int(q, column);
            break;
        }
    }
}

void text_fields_bind(struct query *q, const struct text_table *t, const void *in)
{
    for (size_t i = 0; i < t->count; i++) {
        const void *at = (const char *)in + t->fields[i].offset;
        switch (t->fields[i].type) {
        case TEXT_STRING:
        case TEXT_REQUIRED:
        case TEXT_UTC:
            query_text(q, *(const char *const *)at);
            break;
        case TEXT_REAL:
            query_real(q, *(const double *)at);
            break;
        case TEXT_BITS:
        case TEXT_INT:
            query_int(q, *(const int *)at);
            break;
        case TEXT_SIZE:
            query_int(q, *(const int64_t *)at);
            break;
        }
    }
}
