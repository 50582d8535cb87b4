/* From a model's directory to its layers as a library, built and verified.  Each step is one of
 * another command: search, export, bench. */
#include "cmd/ship_int.h"

#include "cmd/generate_int.h"
#include "cmd/options_int.h"
#include "cmd/plans.h"
#include "cmd/search_int.h"

struct ship {
    const struct options *o;
    const char *at; /* the staging directory */
    json_t *rows;
};

/* ---- before anything takes long -------------------------------------------------------------- */

static int check_model(const struct options *o, struct status *st)
{
    if (o->model == NULL)
        return status_set(
            st, STATUS_USAGE,
            "no model is given; add --model DIR, the directory of a HuggingFace model");
    if (o->weights != NULL)
        return 0;
    return status_set(
        st, STATUS_USAGE,
        "--model: '%s' names no weights, on which the library is verified; name a "
        "directory that has model.safetensors or its index beside config.json, or add "
        "--weights FILE; 'fuseplan search' and 'fuseplan export best --build' need no "
        "weights",
        o->model);
}

/* Whether the weights fit one of the workloads and the scales, and --arch its target. */
static int check_workload(const struct options *one, const struct trained *t, struct status *st)
{
    struct options quiet = *one;
    SCOPED_BY(calibration_release) struct calibration c = {.layers = 0};
    struct target_name target;
    struct arch_list archs;
    SCOPED_BY(workload_release) struct workload w;
    quiet.given |= OPT(QUIET); /* notes come with the search */
    if (workload_from_options(&quiet, false, &target, &w, st) != 0 ||
        trained_check(t, &w, st) != 0 ||
        (one->calibration != NULL && calibration_open(one->calibration, t, &w, &c, st) != 0))
        return -1;
    if (one->arch == NULL)
        return 0;
    return target.kind == TARGET_CPU ? cpu_check_processors(one->arch, st)
                                     : archs_from_options(one, target.kind, &archs, st);
}

static int check(const struct options *o, const char *dir, const char *name, struct status *st)
{
    SCOPED_BY(names_release) struct names ours = {.count = 0};
    SCOPED_BY(trained_close_at) struct trained *t = NULL;
    SCOPED_BUF make = BUF_INIT;
    if (check_model(o, st) != 0 || library_check_name(name, st) != 0 ||
        choosing_check_precision(o, st) != 0 ||
        place_check(dir, options_has(o, OPT(FORCE)), &ours, st) != 0 ||
        trained_open(o->weights, o->prefix, &t, st) != 0 || env_find_make(&make, st) != 0)
        return -1;
    for (int i = 0; i < options_workloads(o); i++) {
        struct options one = each_part(o, i);
        if (check_workload(&one, t, st) != 0)
            return -1;
    }
    return 0;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* A search takes drawn weights, whose times are stored, and the device's own architecture, whatever
 * the library is for. */
static int search_step(void *ctx, const struct options *one, struct status *st)
{
    struct options drawn = *one;
    SCOPED_BY(session_close) struct session s;
    SCOPED_BY(tune_report_release) struct tune_report report;
    (void)ctx;
    drawn.weights = drawn.prefix = drawn.arch = drawn.calibration = NULL;
    return search_run(&drawn, &s, &report, st) == 0 ? search_end(&drawn, &report) : -1;
}

static int verify_step(void *ctx, const struct options *one, struct status *st)
{
    const struct ship *s = ctx;
    struct options quiet = *one;
    quiet.given |= OPT(QUIET); /* the search and the export said it */
    quiet.arch = NULL;
    return ship_verify(&quiet, s->at, s->rows, st);
}

/* Builds and verifies what was exported to a staging directory. */
static int finish(void *ctx, const char *at, struct status *st)
{
    struct ship *s = ctx;
    s->at = at;
    session_catch_signals();
    progress_step(NULL, &(struct step){"building the library", 0, 0, NAN});
    if (library_build(at, st) != 0)
        return st->code == STATUS_INTERRUPTED
                   ? -1
                   : status_prefix(st, "the library cannot be built, and nothing is written");
    int code = each_workload(s->o, "ship", verify_step, s, st);
    if (code < 0)
        return status_prefix(st, "nothing is written");
    return code == EXIT_SUCCESS ? 0
                                : status_set(st,
                                             code == EXIT_INTERRUPTED ? STATUS_INTERRUPTED
                                             : code == EXIT_NO_RESULT ? STATUS_WRONG
                                                                      : STATUS_ENVIRONMENT,
                                             "nothing is written");
}

static int export_step(struct ship *s, const char *dir, const char *name, struct status *st)
{
    const char *operands[] = {BEST_WORD};
    struct options o = *s->o;
    const struct finish f = {finish, s};
    o.operands = operands;
    o.operand_count = 1;
    return generate_write(&o, dir, name, NULL, &f, st);
}

/* ---- the output ------------------------------------------------------------------------------ */

static const struct column columns[] = {
    {"batch", "batch", 0},
    {"seq_len", "seq-len", 0},
    {"row", "row", 0},
    {"value", "plan", 0},
    {"fused", "fused ops", 0},
    {"us_per_layer", "us/layer", 1},
    {"median_ms", NULL, 0},
    {"ci_low_ms", NULL, 0},
    {"ci_high_ms", NULL, 0},
    {"speedup", "x unfused", 2},
    {"speedup_low", "low", 2},
    {"speedup_high", "high", 2},
    {"error", "error", DECIMALS_SHORT},
    {"allowed", "allowed", DECIMALS_SHORT},
    {"unstable", NULL, 0},
};

static void print(const struct options *o, const json_t *rows)
{
    enum { SIZES = 2 };
    bool table = o->format == FORMAT_TABLE;
    int left_out = table && options_workloads(o) == 1 ? SIZES : 0;
    size_t i;
    json_t *row;
    output_rows(o->format, columns + left_out, (int)ARRAY_LEN(columns) - left_out, false, rows);
    if (!table)
        return;
    json_array_foreach(rows, i, row)
    {
        const char *unstable = json_string_value(json_object_get(row, "unstable"));
        if (unstable != NULL)
            unstable_print((unsigned)json_integer_value(json_object_get(row, "value")), unstable);
    }
    puts("\nerror: of a layer's output, from the oracle's, as a share of its norm; of the library, "
         "of the\nlast layer's output, from the best plan's");
}

/* What to do with the library. */
static void note_use(const struct options *o, const char *dir, const char *name)
{
    SCOPED_BUF path = BUF_INIT, run = BUF_INIT;
    buf_add_path(&path, dir);
    buf_addf(&run, "%s/example --weights ", path.ptr);
    buf_add_word(&run, o->weights);
    if (o->prefix != NULL) {
        buf_adds(&run, " --prefix ");
        buf_add_word(&run, o->prefix);
    }
    note(o, "'%s' runs it; '%s/%s.h' and '%s/%s.py' say how C and Python call it", run.ptr,
         path.ptr, name, path.ptr, name);
}

static int run(const struct options *o, struct status *st)
{
    const char *name = options_has(o, OPT(NAME)) ? o->name : STANDALONE_NAME;
    struct ship s = {.o = o, .rows = json_array()};
    SCOPED char *dir = place_directory(o, st);
    int code = dir == NULL || check(o, dir, name, st) != 0
                   ? -1
                   : each_workload(o, "ship", search_step, NULL, st);
    if (code == 0)
        code = export_step(&s, dir, name, st);
    if (code == 0) {
        print(o, s.rows);
        note(o, "'%s' has the library, built, and verified on the weights of '%s'", dir,
             o->weights);
        note_use(o, dir, name);
    }
    if (code < 0 && st->code == STATUS_INTERRUPTED)
        note(o, "nothing is written; what the search measured is stored, and the same command goes "
                "on from here");
    json_decref(s.rows);
    return code;
}

const struct command cmd_ship = {
    .name = "ship",
    .operands = "",
    .summary = "Make a C library of a HuggingFace model: search, export, build, verify",
    .options = OPTS_COMMON |
               (OPTS_WORKLOAD & ~(OPT(PRESET) | OPT(LAYERS) | OPT(LENGTHS) | OPT(AVG_SEQ_LEN))) |
               OPT(WEIGHTS) | OPT(PREFIX) | OPT(OUTPUT) | OPT(FORCE) | OPT(BUDGET) |
               OPT(TIME_LIMIT) | OPT(TOTAL_TIME) | OPT(COMPILER) | OPT(ARCH) | OPT(JOBS) |
               OPT(NAME) | OPT(DB) | OPT(EVENTS) | OPT(PRECISION) | OPT(CALIBRATION),
    .required = OPT(BATCH) | OPT(SEQ_LEN) | OPT(MODEL) | OPT(OUTPUT),
    .each = true,
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about =
        "Reads sizes and functions of the layers from config.json in the model's directory, finds\n"
        "the fastest plan of each workload as 'fuseplan search' does, or takes the one that is\n"
        "known, and writes the library of 'fuseplan export best'.  make builds it.  The plans are\n"
        "compared with the oracle on the weights of model.safetensors, and timed; then the\n"
        "library's own example runs these weights, and its result is compared with the plan's.\n"
        "The directory appears once all of it has succeeded, and else not at all.  Exits 3 if a\n"
        "result is wrong.  With --precision the GEMMs named have operands of e4m3, by the scales "
        "of\n"
        "--calibration, as in 'fuseplan export'.\n"
        "'hf download NAME config.json model.safetensors --local-dir DIR' fetches a model.",
    .examples = "fuseplan ship --model bert-base-uncased -b 8 -s 512 -o bert   # needs a model\n"
                "fuseplan ship --model bert-base-uncased -b 1,8 -s 128 -o bert --time-limit 3m   # "
                "needs a model\n"
                "fuseplan ship --model clip:vision_config --prefix vision_model -b 1 -s 50 -o v   "
                "# needs a model",
    .whole = each_whole, /* one library has all sizes */
    .run = run,
};
