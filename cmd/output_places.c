#include "cmd/cmd.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_check_writable(const char *what, const char *path, struct status *st)
{
    struct stat found;
    char *copy = mem_strdup(path);
    int error = access(dirname(copy), W_OK) == 0 ? 0 : errno;
    if (error == 0 && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        error = EISDIR;
    free(copy);
    if (error == 0)
        return 0;
    return status_set(st, STATUS_USAGE, "%s: cannot write '%s': %s", what, path, strerror(error));
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
