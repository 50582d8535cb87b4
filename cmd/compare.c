#include "cmd/db_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const change_words[] = {[DB_SAME] = "same",
                                           [DB_FASTER] = "faster",
                                           [DB_SLOWER] = "slower",
                                           [DB_FIXED] = "fixed",
                                           [DB_BROKEN] = "broken"};
enum { CHANGES = ARRAY_LEN(change_words) };

static const struct column columns[] = {
    {"options", "workload", 0},
    {"value", "plan", 0},
    {"before_ms", "before, ms", DECIMALS_MS},
    {"before_low_ms", NULL, 0},
    {"before_high_ms", NULL, 0},
    {"after_ms", "after, ms", DECIMALS_MS},
    {"after_low_ms", NULL, 0},
    {"after_high_ms", NULL, 0},
    {"ratio", "ratio", 3},
    {"ratio_low", "low", 3},
    {"ratio_high", "high", 3},
    {"change", "change", 0},
    {"compared", NULL, 0},
    {"before_utc", NULL, 0},
    {"after_utc", NULL, 0},
    {"device", NULL, 0},
};

/* The studies of the later side, by which rows name their workloads. */
struct name {
    int64_t study;
    json_t *options, *device; /* owned */
};

struct comparing {
    const struct options *o;
    struct output out;
    struct name *names; /* (count) owned */
    size_t count;
    int changes[CHANGES];
};

static void add_name(void *ctx, const struct db_listed *l)
{
    struct comparing *c = ctx;
    c->names = mem_resize(c->names, c->count + 1, sizeof(*c->names));
    c->names[c->count++] =
        (struct name){l->study, db_study_options(l), json_string(l->target.device)};
}

static json_t *row_json(const struct comparing *c, const struct db_change_row *r)
{
    size_t at = 0;
    while (at + 1 < c->count && c->names[at].study != r->study)
        at++;
    return json_pack("{sO sO si so so so so so so so so so ss sb ss ss}", "options",
                     c->names[at].options, "device", c->names[at].device, "value", r->value,
                     "before_ms", json_number(r->before.median), "before_low_ms",
                     json_number(r->before.low), "before_high_ms", json_number(r->before.high),
                     "after_ms", json_number(r->after.median), "after_low_ms",
                     json_number(r->after.low), "after_high_ms", json_number(r->after.high),
                     "ratio", json_number(r->ratio.median), "ratio_low", json_number(r->ratio.low),
                     "ratio_high", json_number(r->ratio.high), "change", change_words[r->change],
                     "compared", r->final, "before_utc", r->before_utc, "after_utc", r->after_utc);
}

static void add_row(void *ctx, const struct db_change_row *r)
{
    struct comparing *c = ctx;
    c->changes[r->change]++;
    if (c->o->format != FORMAT_TABLE || r->change != DB_SAME)
        output_row(&c->out, row_json(c, r));
}

static void print_sum(const struct comparing *c)
{
    int sum = 0;
    for (int i = 0; i < CHANGES; i++)
        sum += c->changes[i];
    progress_hide();
    printf("%s%d plan%s on both sides: %d slower, %d faster, %d the same",
           c->out.rows > 0 ? "\n" : "", sum, sum == 1 ? "" : "s", c->changes[DB_SLOWER],
           c->changes[DB_FASTER], c->changes[DB_SAME]);
    if (c->changes[DB_BROKEN] + c->changes[DB_FIXED] > 0)
        printf(", %d broken, %d fixed", c->changes[DB_BROKEN], c->changes[DB_FIXED]);
    putchar('\n');
}

static int compare(struct comparing *c, struct db *a, struct db *b, const char *time,
                   struct status *st)
{
    if (db_list(b != NULL ? b : a, add_name, c, st) != 0)
        return -1;
    output_begin(&c->out, c->o->format, columns, ARRAY_LEN(columns));
    int result = db_compare(a, b, time, add_row, c, st), rows = c->out.rows;
    if (c->o->format == FORMAT_TABLE && rows == 0)
        json_decref(c->out.kept); /* no table */
    else
        output_end(&c->out);
    c->out.rows = rows;
    if (result == 0 && c->o->format == FORMAT_TABLE)
        print_sum(c);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct comparing c = {.o = o};
    struct db *a = NULL, *b = NULL;
    char time[CLOCK_UTC_SIZE];
    bool two = o->operand_count == 2;
    int result = -1;
    if (two == (o->before != NULL))
        return status_set(st, STATUS_USAGE,
                          "two databases, or one and --before TIME, are compared; found %d%s",
                          o->operand_count, two ? " and --before" : "");
    if ((two || db_time_parse(o->before, time, st) == 0) &&
        operand_open(o->operands[0], &a, st) == 0 &&
        (!two || operand_open(o->operands[1], &b, st) == 0))
        result = compare(&c, a, b, two ? NULL : time, st);
    for (size_t i = 0; i < c.count; i++) {
        json_decref(c.names[i].options);
        json_decref(c.names[i].device);
    }
    free(c.names);
    db_close(a);
    db_close(b);
    if (result != 0)
        return -1;
    return c.changes[DB_SLOWER] + c.changes[DB_BROKEN] > 0 ? EXIT_REGRESSION : EXIT_SUCCESS;
}

const struct command cmd_compare = {
    .name = "compare",
    .operands = "A.db [B.db]",
    .summary = "Say which plans became faster or slower",
    .options = OPTS_COMMON | OPT(BEFORE),
    .exits = EXITS_NO_RESULT | EXITS_REGRESSION,
    .about =
        "Compares the newest times of plans in A.db with those in B.db or, with --before TIME, "
        "the\n"
        "times in A.db before a time with those from it on.  A plan became slower if its interval\n"
        "lies above the one before, faster if it lies below.  Workload, kind of device, threads,\n"
        "protocol and inputs must agree; compiler and driver may differ.  Times of comparisons\n"
        "side by side count where both sides have some, else those of the searches.",
    .examples =
        "fuseplan compare ~/.local/share/fuseplan/fuseplan.db --before 2026-01-31 || echo none\n"
        "fuseplan db export | fuseplan db import - --db before.db\n"
        "fuseplan compare before.db ~/.local/share/fuseplan/fuseplan.db\n"
        "fuseplan compare before.db ~/.local/share/fuseplan/fuseplan.db --format csv",
    .run = run,
};
