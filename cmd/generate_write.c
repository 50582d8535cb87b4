/* From the options to a directory: what `generate` and `export` have in common. */
#include "cmd/generate_int.h"

/* The example draws weights, which are not those of a calibration. */
static void note_written(const struct options *o, int files, const char *dir, bool program)
{
    const bool calibrated = o->calibration != NULL;
    const char *use = program      ? "and runs them"
                      : calibrated ? "the library and runs the model that was calibrated"
                                   : "the library and runs its example";
    SCOPED_BUF path = BUF_INIT;
    buf_add_path(&path, dir);
    if (options_has(o, OPT(BUILD)))
        note(o, "wrote %d files; make builds them", files);
    else
        note(o, "wrote %d files; 'make -C %s && %s/%s%s' builds %s", files, path.ptr, path.ptr,
             program ? "plan" : "example", calibrated ? " --weights FILE" : "", use);
}

/* The files of a library are called by its name, and the others by their contents. */
static int check_apart(const struct standalone *p, const char *name, struct status *st)
{
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(p->files[i].name, p->files[k].name) == 0)
                return status_set(st, STATUS_USAGE,
                                  "--name: '%s' is the name of a file that the library has "
                                  "already, '%s'; give another name, such as '%s_bert'",
                                  name, p->files[i].name, name);
    return 0;
}

int generate_write(const struct options *o, const char *dir, const char *name,
                   const struct drawing *inputs, const struct finish *finish, struct status *st)
{
    SCOPED_BY(choosing_close) struct choosing c = {.count = 0};
    SCOPED_BY(standalone_release) struct standalone out = {.count = 0};
    SCOPED_BY(names_release) struct names ours = {.count = 0}; /* files of an earlier output */
    if (choosing_open(o, &c, st) != 0 ||
        place_check(dir, options_has(o, OPT(FORCE)), &ours, st) != 0 ||
        choosing_schedules(o, &c, st) != 0)
        return -1;
    if (inputs != NULL && o->precision != 0)
        choosing_draw_scales(inputs, &c);
    struct standalone_spec spec = choosing_spec(&c, name, inputs);
    standalone_emit(&spec, &out);
    if (check_apart(&out, name, st) != 0)
        return -1;
    json_auto_t *manifest =
        inputs != NULL ? manifest_of_program(&c, &out) : manifest_of_library(&c, name, &out);
    if (place_write(dir, &ours, &out, manifest, finish, st) != 0)
        return -1;
    choosing_note(o, &c);
    if (finish == NULL)
        note_written(o, out.count + 1, dir, inputs != NULL);
    return 0;
}
