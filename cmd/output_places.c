#include "cmd/cmd.h"

#include <sys/stat.h>

int file_check_writable(const char *what, const char *path, struct status *st)
{
    struct status why = STATUS_INIT;
    if (file_check_write(path, &why) != 0)
        return status_set(st, STATUS_USAGE, "%s: %s", what, why.message);
    return file_is_standard_output(path) && file_reserve_standard_output(st) != 0
               ? status_prefix(st, "%s", what)
               : 0;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a != NULL && b != NULL && stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Whether both name one regular file, or one that is not there yet. */
static bool is_same_place(const char *a, const char *b)
{
    if (a == NULL || b == NULL || file_is_standard_output(a) || file_is_standard_output(b))
        return false;
    SCOPED char *x = file_absolute(a), *y = file_absolute(b);
    return is_same_file(a, b) || (x != NULL && y != NULL && strcmp(x, y) == 0 && !file_exists(x));
}

/* The file that a mask is read from; null: none. */
static const char *path_of_mask(const char *text)
{
    return text != NULL && strncmp(text, "file:", 5) == 0 ? text + 5 : NULL;
}

int outputs_check_apart(const struct options *o, const struct command *c, struct status *st)
{
    const struct {
        const char *option, *path;
    } written[] = {
        {"--output", o->output}, {"--npy", o->npy}, {"--svg", o->svg}, {"--events", o->events}};
    SCOPED char *db = (c->options & OPT(DB)) != 0 ? db_place(o->db) : NULL;
    const char *const read[] = {
        db, o->data, o->weights, o->input, o->calibration, o->accuracy, path_of_mask(o->mask)};
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        bool same = false;
        for (size_t k = 0; k < ARRAY_LEN(read); k++)
            same |= is_same_file(written[i].path, read[k]);
        for (int k = 0; k < o->operand_count; k++)
            same |= is_same_file(written[i].path, o->operands[k]) ||
                    is_same_file(written[i].path, path_of_mask(o->operands[k]));
        if (same)
            return status_set(st, STATUS_USAGE,
                              "%s: '%s' is a file that the command reads; name another one",
                              written[i].option, written[i].path);
        for (size_t k = 0; k < i; k++)
            if (is_same_place(written[i].path, written[k].path))
                return status_set(st, STATUS_USAGE,
                                  "%s: '%s' is the file of %s, too; name another one",
                                  written[i].option, written[i].path, written[k].option);
    }
    return 0;
}

int directory_check_vacant(const char *what, const char *dir, struct status *st)
{
    SCOPED_BY(names_release) struct names found = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    if (file_is_standard_output(dir))
        return status_set(st, STATUS_USAGE,
                          "%s: standard output takes one file, and these are several; name a "
                          "directory",
                          what);
    scratch_sweep(dir);
    if (directory_list(dir, &found, st) != 0)
        return -1;
    names_text(&found, &text);
    if (found.count == 0)
        return 0;
    return status_set(
        st, STATUS_USAGE,
        "%s: '%s' holds %s; name a new directory, or add --force to write beside them", what, dir,
        text.ptr);
}
