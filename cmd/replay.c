#include "cmd/plans.h"

enum { BUDGET_DEFAULT = 64 };

static const struct column columns[] = {
    {"space", "space", 0},        {"path", NULL, 0},
    {"recorded", "recorded", 0},  {"strategy", "strategy", 0},
    {"budget", "plans", 0},       {"seeds", NULL, 0},
    {"regret_mean", "regret", 4}, {"regret_median", "median", 4},
    {"regret_p95", "95 %", 4},    {"plans_to_1pct", "to 1 %", 0},
};

struct shown {
    const char *path; /* of the space that is replayed */
};

static void show(void *ctx, int done, int total)
{
    const struct shown *s = ctx;
    const struct step step = {.phase = s->path, .done = done, .total = total, .left_s = NAN};
    progress_step(NULL, &step);
}

static json_t *whole(double count)
{
    return isfinite(count) ? json_integer((json_int_t)count) : json_null();
}

/* The file's name without its directory and ending. */
static json_t *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *end = strrchr(name, '.');
    SCOPED char *copy = mem_strdup(name);
    if (end != NULL)
        copy[end - name] = '\0';
    return json_text(copy);
}

static json_t *row_json(const char *path, const struct recorded_space *s,
                        const struct replay_row *r)
{
    return json_pack("{so so ss ss si si so so so so}", "space", name_of(path), "path",
                     json_text(path), "recorded", recorded_space_is_whole(s) ? "whole" : "in part",
                     "strategy", r->strategy->name, "budget", r->budget, "seeds", r->seeds,
                     "regret_mean", json_number(r->regret_mean), "regret_median",
                     json_number(r->regret_median), "regret_p95", json_number(r->regret_p95),
                     "plans_to_1pct", whole(r->plans_to_1pct));
}

/* Reads all files, some 5 MB each in memory, and refuses one that cannot be replayed: found later,
 * it would cost the replays of the files before it. */
static int read_spaces(const struct options *o, const struct replay_options *r,
                       struct recorded_space *out, struct status *st)
{
    for (int i = 0; i < o->operand_count; i++) {
        if (recorded_space_read(o->operands[i], o->space[0], o->space[1], &out[i], st) != 0)
            return -1;
        if (replay_check(&out[i], r, st) != 0)
            return status_prefix(st, "'%s'", o->operands[i]);
    }
    return 0;
}

/* Appends the rows of a space. */
static int replay_space(const char *path, const struct recorded_space *space,
                        struct replay_options o, json_t *rows, struct status *st)
{
    SCOPED struct replay_row *found =
        mem_alloc(REPLAY_ROWS * (size_t)strategy_count, sizeof(*found));
    struct shown shown = {path};
    int count = 0;
    o.ctx = &shown;
    int result = replay(space, &o, found, &count, st);
    if (result != 0)
        status_prefix(st, "'%s'", path);
    for (int i = 0; i < count; i++)
        json_array_append_new(rows, row_json(path, space, &found[i]));
    return result;
}

/* A replay asks no database, and so knows no best plan. */
static int read_baselines(const struct options *o, struct baselines *out, struct status *st)
{
    if (strstr(o->baseline, BEST_WORD) != NULL)
        return status_set(st, STATUS_USAGE,
                          "--baseline: '%s' is a plan of a database, and replay reads files alone; "
                          "give values from 0 to 65535",
                          BEST_WORD);
    const struct best_plan none = {.known = false};
    return baselines_from_options(o, &none, out, st);
}

static int run(const struct options *o, struct status *st)
{
    const struct strategy *chosen[ARRAY_LEN(o->strategies.items)];
    struct replay_options r = {.strategies = chosen,
                               .strategy_count = o->strategies.count,
                               .budget = options_has(o, OPT(BUDGET)) ? o->budget : BUDGET_DEFAULT,
                               .seeds = o->seeds,
                               .segment_noise = o->noise[0],
                               .plan_noise = o->noise[1],
                               .no_segment_times = options_has(o, OPT(NO_SEGMENT_TIMES)),
                               .step = show,
                               .stop = &session_stop};
    SCOPED struct recorded_space *spaces = mem_alloc((size_t)o->operand_count, sizeof(*spaces));
    json_auto_t *rows = json_array();
    int result = read_baselines(o, &r.baselines, st);
    for (int i = 0; i < o->strategies.count; i++)
        chosen[i] = &strategies[o->strategies.items[i]];
    if (result == 0)
        result = read_spaces(o, &r, spaces, st);
    session_catch_signals();
    int done = 0;
    for (; done < o->operand_count && result == 0; done += result == 0)
        result = replay_space(o->operands[done], &spaces[done], r, rows, st);
    if (result == 0 || (st->code == STATUS_INTERRUPTED && done > 0))
        output_rows(o->format, columns, ARRAY_LEN(columns), true, rows);
    if (result != 0 && st->code == STATUS_INTERRUPTED) {
        *st = STATUS_INIT;
        status_set(st, STATUS_INTERRUPTED, "interrupted; %d of %d files were replayed", done,
                   o->operand_count);
    }
    for (int i = 0; i < o->operand_count; i++)
        recorded_space_release(&spaces[i]);
    return result;
}

const struct command cmd_replay = {
    .name = "replay",
    .operands = "FILE...",
    .summary = "Judge strategies on recorded spaces",
    .options = OPTS_COMMON | OPT(STRATEGY) | OPT(BUDGET) | OPT(SEEDS) | OPT(NOISE) |
               OPT(NO_SEGMENT_TIMES) | OPT(BASELINE) | OPT(SPACE),
    .about =
        "Runs each strategy on times that were recorded, with each seed, and measures nothing.\n"
        "A file has what 'fuseplan db export' has written of one workload.  A row says how far\n"
        "the plan chosen after so many plans is from the best one: the mean, the median and\n"
        "the 95th percentile over the seeds.",
    .exits = EXITS_INTERRUPTED,
    .more = help_strategies,
    .examples =
        "fuseplan db export | fuseplan replay - --strategy guided,annealing,random --budget 128\n"
        "fuseplan db export | fuseplan replay - --strategy additive --noise 0.05,0.05\n"
        "fuseplan db export | fuseplan replay - --strategy reward --no-segment-times --format csv",
    .run = run,
};
