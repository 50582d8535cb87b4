#include "cmd/generate_int.h"
#include "cmd/plans.h"

static int run(const struct options *o, struct status *st)
{
    struct drawing inputs = {.seed = o->seed, .ranges = o->ranges};
    SCOPED char *dir = place_directory(o, st);
    bool done = dir != NULL && generate_write(o, dir, STANDALONE_NAME, &inputs, NULL, st) == 0;
    return done ? EXIT_SUCCESS : -1;
}

const struct command cmd_generate = {
    .name = "generate",
    .operands = "VALUE",
    .summary = "Write the sources of a plan, with a program that runs and times it",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(INIT) | OPT(ARCH) | OPT(OUTPUT) |
               OPT(FORCE) | OPT(DB) | OPT(PRECISION),
    .required = OPT(BATCH) | OPT(SEQ_LEN) | OPT(OUTPUT),
    .exits = EXITS_NO_RESULT,
    .about =
        "VALUE may be 'best', the best plan known for the workload, 'default', the one\n"
        "that is expected to be the fastest, or 'best,default', that one where none is known.\n"
        "Each segment runs with the fastest schedule that the database knows and that every\n"
        "architecture of --arch runs; if there is none, with the default schedule.  Without a\n"
        "GPU, --arch defaults to sm_80,sm_90a.  On a CPU it names the processors that the code\n"
        "runs on, as the compiler does, such as " CPU_ARCH_EXAMPLE " (native).\n"
        "With --lengths or --avg-seq-len rows of padding are not computed.\n"
        "With --precision the GEMMs named have operands of e4m3, with the scales that 'fuseplan\n"
        "bench' takes for the same inputs; they follow from a layer, which takes seconds.\n"
        "Files come into the directory once all are written.\n"
        "An earlier output is replaced, unless there are other files in it or files changed "
        "since;\n"
        "--force keeps the former and replaces the latter.  'make -C DIR' builds the program and\n"
        "DIR/plan runs it, without fuseplan.  'fuseplan export' writes the same as a library.",
    .examples = "fuseplan generate 41115 -b 1 -s 128 -m causal -o plan41115\n"
                "make -C plan41115 && plan41115/plan\n"
                "fuseplan generate best -b 1 -s 128 -m causal -o best",
    .words = words_plans,
    .run = run,
};
