#include "cmd/cmd.h"

#include <string.h>

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
