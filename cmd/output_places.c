#include "cmd/cmd.h"

#include <string.h>
#include <sys/stat.h>

int file_check_writable(const char *what, const char *path, struct status *st)
{
    int error = file_write_error(path);
    if (error != 0)
        return status_set(st, STATUS_USAGE, "%s: cannot write '%s': %s", what, path,
                          strerror(error));
    return file_is_standard_output(path) && file_reserve_standard_output(st) != 0
               ? status_prefix(st, "%s", what)
               : 0;
}

int output_check(const struct options *o, const struct db *db, struct status *st)
{
    struct stat output, read;
    if (stat(o->output, &output) == 0 && stat(db_path(db), &read) == 0 &&
        output.st_dev == read.st_dev && output.st_ino == read.st_ino)
        return status_set(st, STATUS_USAGE,
                          "--output: '%s' is the database that is read; name another file",
                          o->output);
    return file_check_writable("--output", o->output, st);
}

int directory_check_vacant(const char *what, const char *dir, struct status *st)
{
    struct names found;
    struct buf text;
    if (file_is_standard_output(dir))
        return status_set(st, STATUS_USAGE,
                          "%s: standard output takes one file, and these are several; name a "
                          "directory",
                          what);
    if (directory_list(dir, &found, st) != 0)
        return -1;
    buf_init(&text);
    names_text(&found, &text);
    if (found.count > 0)
        status_set(st, STATUS_USAGE,
                   "%s: '%s' holds %s; name a new directory, or add --force to write beside them",
                   what, dir, text.ptr);
    buf_release(&text);
    int result = found.count > 0 ? -1 : 0;
    names_release(&found);
    return result;
}
