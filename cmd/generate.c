#include "cmd/generate_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- the command ----------------------------------------------------------------------------- */

static int check_operands(const struct options *o, struct plan *p, struct status *st)
{
    if (o->output == NULL)
        return status_set(st, STATUS_USAGE, "no directory given; add -o DIR");
    return plan_from_text(o, o->operands[0], p, st);
}

/* --output without trailing slashes; the caller frees. */
static char *directory(const struct options *o)
{
    char *dir = mem_strdup(o->output);
    for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
        dir[len - 1] = '\0';
    return dir;
}

/* Chooses the architectures: --arch, else the device's own, else those that most GPUs run.
 * build_check() makes sure that the default choices run on each. */
static int choose_archs(const struct options *o, struct target_name target,
                        struct standalone_spec *spec, struct status *st)
{
    struct build_target *build = &spec->target;
    struct arch_list *archs = &spec->archs;
    if (archs_from_options(o, target.kind, archs, st) != 0)
        return -1;
    *build = archs->count > 0 ? build_target_of(target.kind, "", true, spec->workload)
                              : target_build(target, spec->workload);
    if (target.kind != TARGET_CUDA)
        return 0;
    if (archs->count == 0 && build->arch != 0)
        *archs = (struct arch_list){1, {build->arch}};
    else if (archs->count == 0)
        *archs = (struct arch_list){2, {CUDA_ARCH_MIN, CUDA_ARCH_HOPPER}};
    for (int i = archs->count - 1; i >= 0; i--) {
        build->arch = archs->arch[i];
        if (build_check(build, spec->workload, st) != 0)
            return -1;
    }
    return 0;
}

static void note_written(const struct options *o, int files, const char *dir)
{
    struct buf path;
    buf_init(&path);
    buf_add_path(&path, dir);
    note(o, "wrote %d files; 'make -C %s && %s/plan' builds and runs them", files, path.ptr,
         path.ptr);
    buf_release(&path);
}

static int generate(const struct options *o, const char *dir, struct plan p, struct status *st)
{
    struct workload w = {.batch = 0};
    struct target_name target = {.device = 0};
    struct schedules schedules = {.measured = 0};
    struct standalone_spec spec = {
        .workload = &w, .candidate = &schedules.candidate, .inputs = {o->seed, o->ranges}};
    struct standalone program = {.count = 0};
    struct names ours = {.count = 0}; /* files of an earlier output */
    json_t *manifest = NULL;
    int result = -1;
    if (workload_from_options(o, true, &target, &w, st) != 0 ||
        place_check(dir, options_has(o, OPT(FORCE)), &ours, st) != 0 ||
        choose_archs(o, target, &spec, st) != 0 ||
        schedules_choose(o, target, &spec, p, &schedules, st) != 0)
        goto out;
    standalone_emit(&spec, &program);
    manifest = manifest_json(&spec, &schedules, &program);
    if (place_write(dir, &ours, &program, manifest, st) != 0)
        goto out;
    schedules_note(o, &spec, &schedules);
    note_written(o, program.count + 1, dir);
    result = EXIT_SUCCESS;
out:
    names_release(&ours);
    json_decref(manifest);
    standalone_release(&program);
    schedules_release(&schedules);
    workload_release(&w);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct plan p = {.handwritten = false};
    if (check_operands(o, &p, st) != 0)
        return -1;
    char *dir = directory(o);
    int code = generate(o, dir, p, st);
    free(dir);
    return code;
}

const struct command cmd_generate = {
    .name = "generate",
    .operands = "VALUE",
    .summary = "Write the sources of a plan, with a program that runs and times it",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(INIT) | OPT(ARCH) | OPT(OUTPUT) |
               OPT(FORCE) | OPT(DB),
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
        "DIR/plan runs it, without fuseplan.",
    .examples = "fuseplan generate 41115 -b 1 -s 128 -m causal -o plan41115\n"
                "make -C plan41115 && plan41115/plan\n"
                "fuseplan generate best -b 1 -s 128 -m causal -o best",
    .words = words_best,
    .run = run,
};
