#include "cmd/bench_int.h"

#include <string.h>

static const struct column columns[] = {
    {"batch", NULL, 0},          {"seq_len", NULL, 0},
    {"mask", NULL, 0},           {"heads", NULL, 0},
    {"head_size", NULL, 0},      {"dtype", NULL, 0},
    {"implementation", NULL, 0}, {"schedule", NULL, 0},
    {"schedule_known", NULL, 0}, {"median_us", NULL, 0},
    {"ci_low_us", NULL, 0},      {"ci_high_us", NULL, 0},
    {"kept", NULL, 0},           {"block_steps", NULL, 0},
    {"units", NULL, 0},          {"us_per_step", NULL, 0},
    {"flops", NULL, 0},          {"executed_flops", NULL, 0},
    {"tflop_per_s", NULL, 0},    {"executed_tflop_per_s", NULL, 0},
    {"error", NULL, 0},          {"reason", NULL, 0},
    {"fastest_peer", NULL, 0},   {"speedup", NULL, 0},
};

#define WORKLOAD_COLUMNS                                                                           \
    {"mask", "mask", 0}, {"batch", "batch", 0},                                                    \
    {                                                                                              \
        "seq_len", "seq-len", 0                                                                    \
    }

static const struct column kernel_columns[] = {
    WORKLOAD_COLUMNS,     {"heads", "heads", 0},       {"head_size", "head size", 0},
    {"dtype", "type", 0}, {"implementation", "by", 0}, {"schedule", "schedule", 0},
};

static const struct column time_columns[] = {
    WORKLOAD_COLUMNS,
    {"median_us", "us", 2},
    {"ci_low_us", "low", 2},
    {"ci_high_us", "high", 2},
    {"block_steps", "steps", 0},
    {"us_per_step", "us/step", 3},
    {"tflop_per_s", "TFLOP/s", 3},
    {"executed_tflop_per_s", "executed", 3},
};

enum { PEER_KEYS = 3 };

static void print_rows(enum format format, const struct column *list, int count, json_t *rows)
{
    struct output out;
    size_t i;
    json_t *row;
    output_begin(&out, format, list, count);
    json_array_foreach(rows, i, row) output_row(&out, json_incref(row));
    output_end(&out);
}

/* Rows for programs, with CSV's columns of each peer. */
static void print_data(const struct attention_table *t, enum format format)
{
    static const char *const keys[PEER_KEYS] = {"variant", "us", "speedup"};
    char names[PEER_VARIANTS_MAX * PEER_KEYS][24];
    struct column all[ARRAY_LEN(columns) + PEER_VARIANTS_MAX * PEER_KEYS];
    int count = ARRAY_LEN(columns);
    memcpy(all, columns, sizeof(columns));
    for (int i = 0; i < t->peers.variant_count * PEER_KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "peers.%d.%s", i / PEER_KEYS, keys[i % PEER_KEYS]);
        all[count++] = (struct column){.key = names[i]};
    }
    print_rows(format, all, count, t->rows);
}

/* "14.21 (1.83x)"; null where the time is not known. */
static json_t *peer_cell(const json_t *peer)
{
    const json_t *us = json_object_get(peer, "us"), *speedup = json_object_get(peer, "speedup");
    char text[64];
    if (json_is_null(us))
        return json_null();
    int len = snprintf(text, sizeof(text), "%.*f", json_number_value(us) < 1000 ? 2 : 0,
                       json_number_value(us));
    if (!json_is_null(speedup))
        snprintf(text + len, sizeof(text) - (size_t)len, " (%.2fx)", json_number_value(speedup));
    return json_string(text);
}

/* A column for each peer: its time, and how many times as fast the kernel here is. */
static void print_peers(const struct attention_table *t)
{
    struct column list[ARRAY_LEN(((struct column[]){WORKLOAD_COLUMNS})) + PEER_VARIANTS_MAX + 2] = {
        WORKLOAD_COLUMNS};
    char names[PEER_VARIANTS_MAX][24];
    int count = ARRAY_LEN(((struct column[]){WORKLOAD_COLUMNS}));
    size_t i, at;
    json_t *row, *peer;
    for (int v = 0; v < t->peers.variant_count; v++) {
        snprintf(names[v], sizeof(names[v]), "cells.%d", v);
        list[count++] = (struct column){names[v], t->peers.variants[v], 0};
    }
    list[count++] = (struct column){"fastest_peer", "fastest", 0};
    list[count++] = (struct column){"speedup", "speed-up", 2};
    json_array_foreach(t->rows, i, row)
    {
        json_t *cells = json_array();
        json_array_foreach(json_object_get(row, "peers"), at, peer)
            json_array_append_new(cells, peer_cell(peer));
        json_object_set_new(row, "cells", cells);
    }
    print_rows(FORMAT_TABLE, list, count, t->rows);
}

void attention_print(const struct attention_table *t, enum format format)
{
    if (format != FORMAT_TABLE) {
        print_data(t, format);
        return;
    }
    if (json_array_size(t->rows) == 0)
        return;
    print_rows(FORMAT_TABLE, kernel_columns, ARRAY_LEN(kernel_columns), t->rows);
    putchar('\n');
    print_rows(FORMAT_TABLE, time_columns, ARRAY_LEN(time_columns), t->rows);
    printf("\na step is a 64x64 block of one head, and us/step its time on one of %d %s;\n"
           "TFLOP/s counts the kept pairs, 'executed' all pairs of the steps\n",
           t->units, t->gpu ? "multiprocessors" : "threads");
    if (t->peers.variant_count == 0)
        return;
    putchar('\n');
    print_peers(t);
}
