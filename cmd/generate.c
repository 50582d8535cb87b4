#include "cmd/generate_int.h"

#include <stdlib.h>
#include <string.h>

static void note_written(const struct options *o, int files, const char *dir)
{
    struct buf path;
    buf_init(&path);
    buf_add_path(&path, dir);
    note(o, "wrote %d files; 'make -C %s && %s/plan' builds and runs them", files, path.ptr,
         path.ptr);
    buf_release(&path);
}

static int generate(const struct options *o, const char *dir, struct status *st)
{
    struct inputs inputs = {.seed = o->seed, .ranges = o->ranges};
    struct choosing c;
    struct standalone program = {.count = 0};
    struct names ours = {.count = 0}; /* files of an earlier output */
    json_t *manifest = NULL;
    int result = -1;
    if (choosing_open(o, &c, st) != 0 ||
        place_check(dir, options_has(o, OPT(FORCE)), &ours, st) != 0 ||
        choosing_schedules(o, &c, st) != 0)
        goto out;
    struct standalone_spec spec = choosing_spec(&c, STANDALONE_NAME, &inputs);
    standalone_emit(&spec, &program);
    manifest = manifest_of_program(&c, &program);
    if (place_write(dir, &ours, &program, manifest, st) != 0)
        goto out;
    choosing_note(o, &c);
    note_written(o, program.count + 1, dir);
    result = EXIT_SUCCESS;
out:
    names_release(&ours);
    json_decref(manifest);
    standalone_release(&program);
    choosing_close(&c);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    char *dir = place_directory(o, st);
    int code = dir != NULL ? generate(o, dir, st) : -1;
    free(dir);
    return code;
}

const struct command cmd_generate = {
    .name = "generate",
    .operands = "VALUE",
    .summary = "Write the sources of a plan, with a program that runs and times it",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(INIT) | OPT(ARCH) | OPT(OUTPUT) |
               OPT(PACKED) | OPT(FORCE) | OPT(DB),
    .required = OPT(BATCH) | OPT(SEQ_LEN) | OPT(OUTPUT),
    .exits = EXITS_NO_RESULT,
    .about =
        "VALUE may be 'best', the best plan known for the workload.\n"
        "Each segment runs with the fastest schedule that the database knows and that every\n"
        "architecture of --arch runs; if there is none, with the default schedule.  Without a\n"
        "GPU, --arch defaults to sm_80,sm_90a.  A new directory appears as a whole or not at all.\n"
        "An earlier output is replaced, unless there are other files in it or files changed "
        "since;\n"
        "--force keeps the former and replaces the latter.  'make -C DIR' builds the program and\n"
        "DIR/plan runs it, without fuseplan.  'fuseplan export' writes the same as a library.",
    .examples = "fuseplan generate 41115 -b 1 -s 128 -m causal -o plan41115\n"
                "make -C plan41115 && plan41115/plan\n"
                "fuseplan generate best -b 1 -s 128 -m causal -o best",
    .words = words_best,
    .run = run,
};
