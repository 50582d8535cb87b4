#include "cmd/cmd.h"

#include <dirent.h>
#include <errno.h>
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

int directory_is_vacant(const char *dir, bool *out, struct status *st)
{
    DIR *d = opendir(dir);
    *out = d == NULL && errno == ENOENT;
    if (*out)
        return 0;
    if (d == NULL)
        return status_set(st, STATUS_ENVIRONMENT,
                          "cannot open directory '%s': %s; name a new directory", dir,
                          strerror(errno));
    int entries = 0;
    while (readdir(d) != NULL)
        entries++;
    closedir(d);
    *out = entries <= 2; /* . and .. */
    return 0;
}
