#include "base/base.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ours(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

/* above: it is a directory above the one that is asked about.  There others may write if the sticky
 * bit keeps them from what is ours. */
static int check_dir(const char *path, bool above, struct status *st)
{
    struct stat info;
    int error = stat(path, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    if (error != 0)
        return status_set(st, STATUS_ENVIRONMENT, "'%s' cannot be looked at: %s", path,
                          strerror(error));
    if (!is_ours(info.st_uid)) {
        const struct passwd *owner = getpwuid(info.st_uid);
        return status_set(st, STATUS_ENVIRONMENT,
                          "'%s' belongs to user %s (%ld), who could put code there that you would "
                          "run",
                          path, owner != NULL ? owner->pw_name : "without a name",
                          (long)info.st_uid);
    }
    bool open_to_others = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (open_to_others && !(above && (info.st_mode & S_ISVTX) != 0))
        return status_set(st, STATUS_ENVIRONMENT,
                          "other users may write to '%s' (mode %o), and could put code there that "
                          "you would run; 'chmod go-w' keeps them out",
                          path, (unsigned)(info.st_mode & 07777));
    return 0;
}

int file_trust_dir(const char *path, struct status *st)
{
    char *at = realpath(path, NULL);
    if (at == NULL)
        return status_set(st, STATUS_ENVIRONMENT, "'%s' cannot be looked at: %s", path,
                          strerror(errno));
    int result = check_dir(at, false, st);
    while (result == 0 && strcmp(at, "/") != 0) {
        char *slash = strrchr(at, '/');
        slash[slash == at ? 1 : 0] = '\0';
        result = check_dir(at, true, st);
    }
    free(at);
    return result;
}

bool file_is_ours(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && is_ours(info.st_uid) &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}
