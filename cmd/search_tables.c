/* Tables under what a search found. */
#include "cmd/plans.h"
#include "cmd/search_int.h"

/* The rows of --top as a table or as CSV; the other formats have them in their object. */
void top_print(enum format format, const json_t *top)
{
    static const struct column top_columns[] = {
        {"rank", "rank", 0},
        {"value", "value", 0},
        {"fused", "fused ops", 0},
        {"handwritten", NULL, 0},
        {"median_ms", "ms", DECIMALS_MS},
        {"ci_low_ms", "low", DECIMALS_MS},
        {"ci_high_ms", "high", DECIMALS_MS},
        {"us_per_layer", "us/layer", 1},
        {"compared", "compared", 0},
        {"times_best", "x best", 3},
    };
    if (format == FORMAT_JSON || format == FORMAT_NDJSON)
        return;
    if (format == FORMAT_TABLE)
        putchar('\n');
    output_rows(format, top_columns, ARRAY_LEN(top_columns), false, top);
    if (format == FORMAT_MARKDOWN)
        putchar('\n');
}

void precisions_print(const json_t *precisions)
{
    static const struct column precision_columns[] = {
        {"precision", "precision", 0},       {"value", "best plan", 0},
        {"median_ms", "ms", DECIMALS_MS},    {"ci_low_ms", "low", DECIMALS_MS},
        {"ci_high_ms", "high", DECIMALS_MS}, {"speedup", "times as fast", DECIMALS_TWO},
        {"error", "error", DECIMALS_SHORT},
    };
    putchar('\n');
    output_rows(FORMAT_TABLE, precision_columns, ARRAY_LEN(precision_columns), true, precisions);
}
