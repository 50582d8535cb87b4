/* fuzz_TARGET [-runs=N] [-seed=N] FILE_OR_DIRECTORY...: runs a target on all these files, and then
 * on N inputs that it makes of them.  A child runs them, so that the input that ends it can be
 * kept: as crash-SEED-RUN in the working directory.  Equal seeds give equal inputs.
 *
 * libFuzzer takes the same arguments and is far better at finding inputs.  This driver needs no
 * clang, and takes the same time every time. */
#include "tests/stress/fuzz/fuzz.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16, EDITS_MAX = 6 };

/* What the child runs, as the parent sees it. */
struct current {
    int64_t run; /* -1 - i: file i */
    size_t len;
    uint8_t bytes[INPUT_MAX];
};

static struct buf *files;
static size_t file_count;

static void add_file(const char *path)
{
    struct status st = STATUS_INIT;
    struct buf bytes = BUF_INIT;
    if (file_read(path, INPUT_MAX, &bytes, &st) != 0) {
        fprintf(stderr, "%s\n", st.message);
        exit(2);
    }
    files = mem_resize(files, file_count + 1, sizeof(*files));
    files[file_count++] = bytes;
}

static void add_all(const char *path)
{
    struct stat info;
    struct names names = {0};
    struct status st = STATUS_INIT;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        add_file(path);
        return;
    }
    if (directory_list(path, &names, &st) != 0)
        exit(2);
    for (int i = 0; i < names.count; i++) {
        SCOPED_BUF file = BUF_INIT;
        buf_addf(&file, "%s/%s", path, names.items[i]);
        add_file(file.ptr);
    }
    names_release(&names);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Replaces `out` bytes of the input at `at` by others, as far as there is room. */
static void splice(struct current *c, size_t at, size_t out, const void *in, size_t in_len)
{
    uint8_t copy[INPUT_MAX];
    size_t rest = c->len - at - out;
    if (c->len - out + in_len > INPUT_MAX)
        return;
    if (in_len > 0)
        memcpy(copy, in, in_len); /* it may be a part of the input */
    memmove(c->bytes + at + in_len, c->bytes + at + out, rest);
    memcpy(c->bytes + at, copy, in_len);
    c->len += in_len - out;
}

static void edit(struct rng *r, struct current *c)
{
    static const char *const words[] = {
        "0",       "1",   "-1",   "65535", "65536", "4294967296", "9223372036854775807",
        "1e999",   "nan", "{}",   "[]",    "\"",    "1111111111", "null",
        "\\u0000", "\n",  "\x7f", "\xff"};
    size_t at = rng_below(r, (uint32_t)c->len + 1), most = c->len - at;
    size_t len = most > 0 ? 1 + rng_below(r, most < 16 ? (uint32_t)most : 16) : 0;
    const char *word = words[rng_below(r, ARRAY_LEN(words))];
    const struct buf *other = &files[rng_below(r, (uint32_t)file_count)];
    size_t from = rng_below(r, (uint32_t)other->len + 1);
    size_t taken = other->len - from < 64 ? other->len - from : 64;
    uint8_t byte = (uint8_t)rng_next(r);
    switch (rng_below(r, 7)) {
    case 0:
        if (most > 0)
            c->bytes[at] ^= (uint8_t)(1u << byte % 8);
        break;
    case 1:
        splice(c, at, most > 0 ? 1 : 0, &byte, 1);
        break;
    case 2:
        splice(c, at, len, NULL, 0);
        break;
    case 3:
        splice(c, at, 0, c->bytes + at, len);
        break;
    case 4:
        splice(c, at, len, word, strlen(word));
        break;
    case 5:
        splice(c, at, 0, word, strlen(word));
        break;
    default:
        splice(c, at, len < taken ? len : taken, other->ptr + from, taken);
    }
}

static void make_input(uint64_t seed, int64_t run, struct current *c)
{
    struct rng r = {.state = splitmix64(seed + splitmix64((uint64_t)run))};
    const struct buf *from = &files[rng_below(&r, (uint32_t)file_count)];
    memcpy(c->bytes, from->ptr, from->len);
    c->len = from->len;
    for (uint32_t n = 1 + rng_below(&r, EDITS_MAX); n > 0; n--)
        edit(&r, c);
}

/* ---- running --------------------------------------------------------------------------------- */

/* From an allocation of its own, so that a sanitizer sees what is read past its end. */
static void run_one(const struct current *c)
{
    SCOPED uint8_t *copy = mem_alloc(c->len + (c->len == 0), 1);
    memcpy(copy, c->bytes, c->len);
    LLVMFuzzerTestOneInput(copy, c->len);
}

static void run_all(uint64_t seed, int64_t runs, struct current *c)
{
    for (size_t i = 0; i < file_count; i++) {
        c->run = -1 - (int64_t)i;
        c->len = files[i].len;
        memcpy(c->bytes, files[i].ptr, files[i].len);
        run_one(c);
    }
    for (c->run = 0; c->run < runs; c->run++) {
        make_input(seed, c->run, c);
        run_one(c);
    }
}

static void report(uint64_t seed, int status, const struct current *c)
{
    char path[80];
    struct status st = STATUS_INIT;
    snprintf(path, sizeof(path), "crash-%llu-%lld", (unsigned long long)seed, (long long)c->run);
    file_write(path, c->bytes, c->len, &st);
    fprintf(stderr, "run %lld ended the process with %s %d; its input is in '%s'\n",
            (long long)c->run, WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), path);
}

int main(int argc, char **argv)
{
    int64_t runs = 0, seed = 1, *number;
    struct status st = STATUS_INIT;
    for (int i = 1; i < argc; i++) {
        number = strncmp(argv[i], "-runs=", 6) == 0   ? &runs
                 : strncmp(argv[i], "-seed=", 6) == 0 ? &seed
                                                      : NULL;
        if (number == NULL)
            add_all(argv[i]);
        else if (number_parse(argv[i], argv[i] + 6, 0, INT64_MAX, number, &st) != 0)
            return fprintf(stderr, "%s\n", st.message), 2;
    }
    if (file_count == 0)
        return fprintf(stderr, "no input to begin with\n"), 2;
    struct current *c =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return perror("mmap"), 2;
    pid_t child = fork();
    if (child == 0) {
        run_all((uint64_t)seed, runs, c);
        exit(0); /* a sanitizer looks for leaks there */
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        report((uint64_t)seed, status, c);
    for (size_t i = 0; i < file_count; i++)
        buf_release(&files[i]);
    printf("%zu files and %lld new inputs\n", file_count, (long long)c->run);
    free(files);
    return status != 0;
}
