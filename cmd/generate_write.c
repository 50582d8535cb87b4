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

/* How often a name stands between two texts in the files. */
static int count_of(const struct standalone *p, const char *before, const char *name,
                    const char *behind)
{
    SCOPED char *part = buf_text("%s%s%s", before, name, behind);
    int count = 0;
    for (int i = 0; i < p->count; i++)
        for (const char *at = p->files[i].text.ptr; (at = strstr(at, part)) != NULL; at++)
            count++;
    return count;
}

/* A library's model is `struct NAME`, so that no other type may have its name.  NAME.h must not
 * stand in front of a header of the system. */
static int check_types(const struct standalone *p, const char *name, struct status *st)
{
    const int types = count_of(p, "struct ", name, " {") + count_of(p, "enum ", name, " {") +
                      count_of(p, "union ", name, " {");
    const int headers = count_of(p, "<", name, ".h>");
    if (types <= 1 && headers == 0)
        return 0;
    return status_set(st, STATUS_USAGE,
                      "--name: '%s' is the name of a %s that the library uses; give another name, "
                      "such as '%s_bert'",
                      name, headers > 0 ? "header" : "type", name);
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
    if (check_apart(&out, name, st) != 0 || check_types(&out, name, st) != 0)
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
