#include "tests/stress/soak.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads /proc/PID/stat, in which the name may hold blanks and brackets. */
static bool task_read(const char *pid, struct task *out)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || strlen(close) < strlen(") S 1"))
        return false;
    out->pid = (pid_t)strtol(pid, NULL, 10);
    out->state = close[2];
    out->parent = (pid_t)strtol(close + 3, NULL, 10);
    snprintf(out->name, sizeof(out->name), "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static void tasks_read(struct tasks *out)
{
    *out = (struct tasks){0};
    DIR *dir = opendir("/proc");
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct task t;
        if (strspn(e->d_name, "0123456789") != strlen(e->d_name) || !task_read(e->d_name, &t))
            continue;
        out->items = mem_resize(out->items, (size_t)out->count + 1, sizeof(t));
        out->items[out->count++] = t;
    }
    if (dir != NULL)
        closedir(dir);
}

void tasks_below(pid_t root, struct tasks *out)
{
    struct tasks all;
    tasks_read(&all);
    bool *below = mem_alloc((size_t)all.count + 1, sizeof(*below)), more = true;
    while (more) {
        more = false;
        for (int i = 0; i < all.count; i++) {
            bool found = all.items[i].parent == root;
            for (int j = 0; j < all.count && !found; j++)
                found = below[j] && all.items[j].pid == all.items[i].parent;
            more = more || (found && !below[i]);
            below[i] = found;
        }
    }
    *out = (struct tasks){.items = mem_alloc((size_t)all.count + 1, sizeof(*out->items))};
    for (int i = 0; i < all.count; i++)
        if (below[i] && all.items[i].state != 'Z')
            out->items[out->count++] = all.items[i];
    free(below);
    tasks_release(&all);
}

void tasks_release(struct tasks *t)
{
    free(t->items);
    *t = (struct tasks){0};
}

static int entries(const char *dir)
{
    struct names names;
    struct status ignored = STATUS_INIT;
    if (directory_list(dir, &names, &ignored) != 0)
        return 0;
    int count = names.count;
    names_release(&names);
    return count;
}

bool usage_read(pid_t pid, struct usage *out)
{
    static const char rss[] = "VmRSS:";
    char path[64], line[256];
    *out = (struct usage){0};
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    while (fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, rss, strlen(rss)) == 0)
            out->rss_kib = strtol(line + strlen(rss), NULL, 10);
    fclose(f);
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    out->descriptors = entries(path);
    return out->rss_kib > 0;
}

int files_below(const char *dir)
{
    struct names names;
    struct status ignored = STATUS_INIT;
    if (directory_list(dir, &names, &ignored) != 0)
        return 0;
    int count = names.count;
    for (int i = 0; i < names.count; i++) {
        struct stat info;
        struct buf path;
        buf_init(&path);
        buf_addf(&path, "%s/%s", dir, names.items[i]);
        if (lstat(path.ptr, &info) == 0 && S_ISDIR(info.st_mode))
            count += files_below(path.ptr);
        buf_release(&path);
    }
    names_release(&names);
    return count;
}

void give_up(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    puts("");
    fflush(stdout);
    exit(2);
}

bool file_cut_short(const char *path)
{
    enum { LEFT = 4000 };
    struct status st = STATUS_INIT;
    struct buf all;
    buf_init(&all);
    bool cut = file_read(path, 0, &all, &st) == 0 && all.len > LEFT && unlink(path) == 0 &&
               file_write(path, all.ptr, LEFT, &st) == 0;
    buf_release(&all);
    return cut;
}
