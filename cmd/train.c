#include "cmd/cmd.h"

enum { DATA_MAX_BYTES = 64 << 20 }; /* a million lines */

static const struct column columns[] = {
    {"name", "model", 0},
    {"plans", "plans", 0},
    {"threshold_ms", "threshold ms", DECIMALS_MS},
    {"spearman", "spearman", 3},
    {"top1_regret", "regret", 4},
    {"auc", "auc", 3},
};

static void print(const struct options *o, const char *name, const struct learned *l)
{
    struct output out;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    output_row(&out,
               json_pack("{so si so so so so}", "name", json_text(name), "plans", l->report.count,
                         "threshold_ms", json_number(model_threshold_ms(l->model)), "spearman",
                         json_number(l->report.spearman), "top1_regret",
                         json_number(l->report.top1_regret), "auc", json_number(l->report.auc)));
    output_end(&out);
}

/* Reads the data first, so that no database is created if the data is bad. */
static int train_file(const struct options *o, const struct model_options *options,
                      struct learned *out, struct status *st)
{
    SCOPED_BY(db_close_at) struct db *db = NULL;
    SCOPED_BY(model_data_release) struct model_data data = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    if (file_read_text(o->data, DATA_MAX_BYTES, &text, st) != 0 ||
        model_data_parse(o->data, text.ptr, text.len, &data, st) != 0 ||
        db_open(o->db, DB_WRITE, &db, st) != 0)
        return -1;
    return model_learn(db, o->name, options, &data, out, st);
}

static int train_workload(const struct options *o, const struct model_options *options,
                          struct learned *out, struct status *st)
{
    SCOPED_BY(session_close) struct session s;
    struct segment_times times;
    if (session_open_study(o, DB_READ, SCOPE_STORED, &s, st) != 0)
        return -1;
    struct build_target build = target_build(s.target, &s.workload);
    return study_learn(s.db, s.study, &build, options, true, &times, out, st);
}

static int run(const struct options *o, struct status *st)
{
    const struct model_options options = {.seed = o->seed, .quantile = o->quantile};
    bool workload;
    SCOPED_BY(learned_release) struct learned learned = {.model = NULL};
    if (model_of_workload(o, &workload, st) != 0)
        return -1;
    if ((o->data != NULL) == workload)
        return status_set(st, STATUS_USAGE, "%s; give --data FILE or a workload with -b, -s and -m",
                          workload ? "a file and a workload are given at once"
                                   : "nothing to train on");
    if ((workload ? train_workload : train_file)(o, &options, &learned, st) != 0)
        return -1;
    print(o, workload ? "plans" : o->name, &learned);
    return EXIT_SUCCESS;
}

const struct command cmd_train = {
    .name = "train",
    .operands = "",
    .summary = "Train a model from a file of times, or judge that of a workload",
    .options =
        OPTS_COMMON | OPTS_WORKLOAD | OPT(DATA) | OPT(NAME) | OPT(QUANTILE) | OPT(DB) | OPT(EVENTS),
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about = "A file has lines such as '1111100011001100   54.524'.  With a workload, the plans\n"
             "stored for it are the data, and the model is not: 'fuseplan predict' trains it.\n"
             "Prints figures on held-out plans: rank correlation (spearman), how much slower than\n"
             "the best the plan is that the model would choose (regret), and the area under the\n"
             "classifier's curve (auc).",
    .examples = "fuseplan train --data docs/examples/times.txt\n"
                "fuseplan train --data docs/examples/times.txt --name gpu --quantile 0.05\n"
                "fuseplan train -b 1 -s 128 -m causal",
    .run = run,
};
