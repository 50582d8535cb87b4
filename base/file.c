#include "base/base.h"

#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool file_hold_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

bool file_has_suffix(const char *name, const char *suffix)
{
    size_t len = strlen(name), tail = strlen(suffix);
    return len > tail && strcmp(name + len - tail, suffix) == 0;
}

const char *file_mode_name(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISDIR(mode)  ? "a directory"
                            : "a device";
}

/* Without O_NONBLOCK the call would wait for somebody who writes to a pipe. */
int file_open(const char *path, struct status *st)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0) {
        status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': it is %s, and must be a regular file",
                   path, file_mode_name(info.st_mode));
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static int too_large(const char *path, size_t max_bytes, struct status *st)
{
    return status_set(st, STATUS_USAGE, "'%s' is larger than the %zu bytes expected at most", path,
                      max_bytes);
}

/* Appends what an open file holds; its size is not known before, as of files below /proc. */
static int read_all(int fd, const char *path, size_t max_bytes, struct buf *out, struct status *st)
{
    char chunk[65536];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': %s", path,
                              strerror(errno));
        total += (size_t)n;
        if (total > max_bytes)
            return too_large(path, max_bytes, st);
        buf_add(out, chunk, (size_t)n);
    }
    return 0;
}

int file_read_open(int fd, const char *path, size_t max_bytes, struct buf *out, struct status *st)
{
    struct stat info;
    if (max_bytes == 0)
        max_bytes = FILE_MAX_BYTES;
    int result = fstat(fd, &info) == 0 && (uint64_t)info.st_size > max_bytes
                     ? too_large(path, max_bytes, st)
                     : read_all(fd, path, max_bytes, out, st);
    close(fd);
    return result;
}

int file_read(const char *path, size_t max_bytes, struct buf *out, struct status *st)
{
    int fd = file_open(path, st);
    return fd >= 0 ? file_read_open(fd, path, max_bytes, out, st) : -1;
}

static int make_dir(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    errno = error == EEXIST ? ENOTDIR : error;
    return -1;
}

int file_make_dirs(const char *path, struct status *st)
{
    SCOPED char *partial = mem_strdup(path);
    int result = 0;
    for (char *slash = strchr(partial + 1, '/'); slash != NULL && result == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        result = make_dir(partial);
        *slash = '/';
    }
    if (result == 0)
        result = make_dir(partial);
    if (result != 0)
        status_set(st, STATUS_ENVIRONMENT, "cannot create directory '%s': %s", path,
                   strerror(errno));
    return result;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

int file_remove_all(const char *path, struct status *st)
{
    enum { OPEN_DIRS = 16 };
    if (nftw(path, remove_entry, OPEN_DIRS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "cannot remove '%s': %s", path, strerror(errno));
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int program_directory(struct buf *out, struct status *st)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot find the directory of this program: %s",
                          strerror(errno));
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    buf_adds(out, self);
    return 0;
}

char *file_absolute(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    SCOPED char *parent = buf_text("%.*s", (int)(name - path), path);
    SCOPED char *dir = realpath(parent[0] != '\0' ? parent : ".", NULL);
    return dir != NULL ? buf_text("%s/%s", strcmp(dir, "/") != 0 ? dir : "", name) : NULL;
}

bool file_may_run(const char *dir)
{
    struct statvfs fs;
    return statvfs(dir, &fs) != 0 || (fs.f_flag & ST_NOEXEC) == 0;
}

const char *variable_value(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A service may run without HOME. */
const char *file_home(void)
{
    const char *set = variable_value("HOME");
    const struct passwd *user = set == NULL ? getpwuid(getuid()) : NULL;
    return set != NULL ? set : user != NULL ? user->pw_dir : "";
}

char *file_user_dir(const char *override, const char *env, const char *xdg, const char *home_dir)
{
    if (override == NULL && env != NULL)
        override = variable_value(env);
    if (override != NULL)
        return mem_strdup(override);

    const char *base = variable_value(xdg);
    if (base != NULL && base[0] == '/') /* the XDG specification: relative paths are invalid */
        return buf_text("%s/fuseplan", base);
    return buf_text("%s/%s/fuseplan", file_home(), home_dir);
}
