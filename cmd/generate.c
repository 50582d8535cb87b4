#include "cmd/generate_int.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char manifest_name[] = "manifest.json";

/* ---- the directory --------------------------------------------------------------------------- */

static int write_file(const char *dir, const char *name, const char *text, size_t len,
                      struct status *st)
{
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", dir, name);
    int result = file_write(path.ptr, text, len, st);
    buf_release(&path);
    return result;
}

static int fill(const char *dir, const struct standalone *p, const json_t *manifest,
                struct status *st)
{
    for (int i = 0; i < p->count; i++)
        if (write_file(dir, p->files[i].name, p->files[i].text.ptr, p->files[i].text.len, st) != 0)
            return -1;
    char *text = json_dumps(manifest, JSON_INDENT(2) | JSON_REAL_PRECISION(DBL_DIG));
    struct buf whole;
    buf_init(&whole);
    buf_addf(&whole, "%s\n", text);
    free(text);
    int result = write_file(dir, manifest_name, whole.ptr, whole.len, st);
    buf_release(&whole);
    return result;
}

static bool holds_manifest(const char *dir)
{
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", dir, manifest_name);
    json_t *manifest = json_load_file(path.ptr, 0, NULL);
    const char *by = json_string_value(json_object_get(manifest, "generator"));
    bool ours = by != NULL && strcmp(by, MANIFEST_GENERATOR) == 0;
    json_decref(manifest);
    buf_release(&path);
    return ours;
}

/* The directory must be missing, empty, or made by this command. */
static int check_place(const char *dir, struct status *st)
{
    bool vacant;
    if (directory_is_vacant(dir, &vacant, st) != 0)
        return -1;
    if (vacant || holds_manifest(dir))
        return 0;
    return status_set(
        st, STATUS_USAGE,
        "'%s' is not empty and was not made by 'fuseplan generate'; name a new directory", dir);
}

/* Moves an existing directory aside, so that it can be put back on a failure. */
static int swap(const char *fresh, const char *final, const char *old, struct status *st)
{
    bool replaces = file_exists(final);
    if ((!replaces || rename(final, old) == 0) && rename(fresh, final) == 0)
        return file_remove_all(old, st);
    status_set(st, STATUS_ENVIRONMENT, "cannot create '%s': %s", final, strerror(errno));
    if (replaces && !file_exists(final))
        rename(old, final);
    return -1;
}

/* Writes all files beside dir and renames, so that dir appears as a whole or not at all. */
static int place(const char *dir, const struct standalone *p, const json_t *manifest,
                 struct status *st)
{
    struct buf fresh, old;
    buf_init(&fresh);
    buf_init(&old);
    buf_addf(&fresh, "%s.%ld.new", dir, (long)getpid());
    buf_addf(&old, "%s.%ld.old", dir, (long)getpid());
    int result = -1;
    if (file_make_dirs(fresh.ptr, st) == 0 && fill(fresh.ptr, p, manifest, st) == 0)
        result = swap(fresh.ptr, dir, old.ptr, st);
    file_remove_all(fresh.ptr, st);
    buf_release(&fresh);
    buf_release(&old);
    return result;
}

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

static int generate(const struct options *o, const char *dir, struct plan p, struct status *st)
{
    struct workload w = {.batch = 0};
    struct target_name target = {.device = 0};
    struct schedules schedules = {.measured = 0};
    struct standalone_spec spec = {
        .workload = &w, .candidate = &schedules.candidate, .inputs = {o->seed, o->ranges}};
    struct standalone program = {.count = 0};
    json_t *manifest = NULL;
    int result = -1;
    if (workload_from_options(o, true, &target, &w, st) != 0 || check_place(dir, st) != 0 ||
        choose_archs(o, target, &spec, st) != 0 ||
        schedules_choose(o, target, &spec, p, &schedules, st) != 0)
        goto out;
    standalone_emit(&spec, &program);
    manifest = manifest_json(&spec, &schedules, &program);
    if (place(dir, &program, manifest, st) != 0)
        goto out;
    schedules_note(o, &spec, &schedules);
    note(o, "wrote %d files; 'make -C %s && %s/plan' builds and runs them", program.count + 1, dir,
         dir);
    result = EXIT_SUCCESS;
out:
    json_decref(manifest);
    standalone_release(&program);
    schedules_release(&schedules);
    workload_release(&w);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct plan p;
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
               OPT(DB),
    .about =
        "VALUE may be 'best', the best plan known for the workload.\n"
        "Each segment runs with the fastest schedule that the database knows and that every\n"
        "architecture of --arch runs; if there is none, with the default schedule.  Without a\n"
        "GPU, --arch defaults to sm_80,sm_90a.  The directory is written as a whole or not at\n"
        "all.  It must be missing, empty or an earlier output, which is replaced.  'make -C DIR'\n"
        "builds the program and DIR/plan runs it, without fuseplan.",
    .examples = "fuseplan generate 41115 -b 1 -s 128 -m causal -o plan41115\n"
                "make -C plan41115 && plan41115/plan\n"
                "fuseplan generate best -b 1 -s 128 -m causal -o best",
    .words = words_best,
    .run = run,
};
