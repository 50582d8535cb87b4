#include "cmd/generate_int.h"
#include "cmd/plans.h"

static int build(const struct options *o, const char *dir, struct status *st)
{
    session_catch_signals(); /* so that make ends with this program */
    if (library_build(dir, st) == 0) {
        SCOPED_BUF path = BUF_INIT;
        buf_add_path(&path, dir);
        note(o, "built the library; '%s/example%s' runs %s", path.ptr,
             o->precision != 0 ? " --weights FILE" : "",
             o->precision != 0 ? "the model that was calibrated" : "its example");
        return 0;
    }
    struct status why = *st;
    *st = STATUS_INIT;
    return status_set(
        st, why.code, "--build: %s in '%s'; the folder is written%s", why.message, dir,
        why.code == STATUS_INTERRUPTED ? "" : ", and what is above says what it lacks");
}

static int run(const struct options *o, struct status *st)
{
    const char *name = options_has(o, OPT(NAME)) ? o->name : STANDALONE_NAME;
    SCOPED char *dir = place_directory(o, st);
    SCOPED_BUF make = BUF_INIT;
    bool done = dir != NULL && library_check_name(name, st) == 0 &&
                choosing_check_precision(o, st) == 0 &&
                (!options_has(o, OPT(BUILD)) || env_find_make(&make, st) == 0) &&
                generate_write(o, dir, name, NULL, NULL, st) == 0 &&
                (!options_has(o, OPT(BUILD)) || build(o, dir, st) == 0);
    return done ? EXIT_SUCCESS : -1;
}

const struct command cmd_export = {
    .name = "export",
    .operands = "VALUE",
    .summary = "Write a plan as a C library, to be linked into other programs",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(ARCH) | OPT(OUTPUT) | OPT(FORCE) |
               OPT(PACKED) | OPT(NAME) | OPT(BUILD) | OPT(DB) | OPT(PRECISION) | OPT(CALIBRATION),
    .required = OPT(BATCH) | OPT(SEQ_LEN) | OPT(OUTPUT),
    .each = true,
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about =
        "VALUE may be 'best', the best plan known for each workload, 'default', the one\n"
        "that is expected to be the fastest, or 'best,default', that one where none is known.\n"
        "The folder needs no\n"
        "fuseplan: kernels, a launcher in C, a header with all contracts, Makefile and\n"
        "CMakeLists.txt, an example.  A library of several sizes runs a batch by the plan of\n"
        "exactly its size, else by the next larger one.  --name begins the names of its files and\n"
        "functions, so that one program can have several libraries.  If the library is exported\n"
        "with lengths or with --packed, its calls with lengths compute no rows of padding.\n"
        "With --precision the GEMMs named have operands of e4m3: the library rounds their weights\n"
        "when it gets them, and their inputs by the scales of --calibration, which are of one "
        "model.\n"
        "Schedules, --arch and --force are as in 'fuseplan generate'.",
    .examples = "fuseplan export 41115 -b 1 -s 128 -m causal -o bert\n"
                "make -C bert && bert/example\n"
                "fuseplan export best -b 1 -s 128 -m causal --name causal -o causal --build",
    .words = words_plans,
    .whole = each_whole, /* one library has all sizes */
    .run = run,
};
