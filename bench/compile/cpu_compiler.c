/* Finds gcc or clang and proves that it builds a program with OpenMP and OpenBLAS. */
#include "bench/compile/compile.h"

#include <sys/resource.h>

/* What a worker maps for each thread, and once more: 128 MiB for OpenBLAS, and up to as much for
 * malloc and the stack.  Where the system refuses OpenBLAS that, it asks again and again, for ever.
 * Workers needed 450 MiB on one thread and 680 on two. */
#define THREAD_MAP_BYTES ((uint64_t)256 << 20)

/* Uses all libraries that emitted code uses, and includes all of its headers.  A worker loads it
 * and answers what it returns: which OpenBLAS there is, the file of the compiler's OpenMP, and the
 * compiler's version. */
static const char probe_source[] =
    "#define _GNU_SOURCE\n"
    "#include \"attention.h\"\n"
    "#include \"handwritten_attention.h\"\n"
    "#include \"streaming_attention.h\"\n"
    "#include \"tokens.h\"\n"
    "#include <cblas.h>\n"
    "#include <dlfcn.h>\n"
    "#include <math.h>\n"
    "#include <omp.h>\n"
    "#include <stdio.h>\n"
    "extern char *openblas_get_config(void);\n"
    "extern char *openblas_get_corename(void);\n"
    "extern int openblas_get_parallel(void);\n"
    "const char *fuseplan_probe(void)\n"
    "{\n"
    "    static char text[128];\n"
    "    static const char *const parallel[] = {\"sequential\", \"pthreads\", \"openmp\"};\n"
    "    char version[32] = \"\";\n"
    "    int threads = 0;\n"
    "    float a = 2, b = 3, c = 0, in[16], out[16];\n"
    "    #pragma omp parallel reduction(+ : threads)\n"
    "    threads += 1;\n"
    "    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, "
    "1);\n"
    "    for (int i = 0; i < 16; i++)\n"
    "        in[i] = fp_gelu((float)i);\n"
    "    fp_transpose(4, 4, in, 4, out, 4);\n"
    "    if (threads < 1 || fabsf(c - 6) > 0 || fabsf(out[4] - 0.84134475f) > 1e-5f)\n"
    "        return \"\";\n"
    "    sscanf(openblas_get_config(), \"OpenBLAS %31s\", version);\n"
    "    snprintf(text, sizeof(text), \"OpenBLAS %s %s %s\", version,\n"
    "             parallel[openblas_get_parallel()], openblas_get_corename());\n"
    "    return text;\n"
    "}\n"
    "const char *fuseplan_probe_openmp(void)\n"
    "{\n"
    "    Dl_info info;\n"
    "    return dladdr((void *)omp_get_num_procs, &info) != 0 ? info.dli_fname : \"\";\n"
    "}\n"
    "#define TEXT(x) #x\n"
    "#define VERSION(major, minor, patch) TEXT(major) \".\" TEXT(minor) \".\" TEXT(patch)\n"
    "const char *fuseplan_probe_compiler(void)\n"
    "{\n"
    "#ifdef __clang__\n"
    "    return \"clang \" VERSION(__clang_major__, __clang_minor__, __clang_patchlevel__);\n"
    "#else\n"
    "    return \"gcc \" VERSION(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);\n"
    "#endif\n"
    "}\n";

/* The compiler that the user names, and by what; else "cc". */
static const char *chosen_compiler(const char *option, const char **by)
{
    const char *const variables[] = {"FUSEPLAN_CC", "CC"};
    *by = option != NULL ? "--compiler" : NULL;
    for (size_t i = 0; i < ARRAY_LEN(variables) && option == NULL; i++) {
        option = variable_value(variables[i]);
        *by = option != NULL ? variables[i] : NULL;
    }
    return option != NULL ? option : "cc";
}

/* A compiler's name may be a path with blanks, or a program and its arguments: "ccache gcc -O1". */
static bool find_program(const char *name, struct arguments *words, struct buf *path)
{
    if (process_find(name, path))
        return true;
    arguments_add_words(words, name);
    return words->count > 0 && process_find(words->items[0], path);
}

/* A compiler behind a wrapper comes before all options, the user's options come last and win. */
static void add_flags(const struct arguments *words, struct arguments *flags)
{
    int options = 1;
    for (; options < words->count && words->items[options][0] != '-'; options++)
        arguments_add(flags, words->items[options]);
    arguments_add_words(flags, CPU_FLAGS);
    for (; options < words->count; options++)
        arguments_add(flags, words->items[options]);
}

static int read_version(const struct toolchain_request *request, struct toolchain *out,
                        struct buf *identity, struct status *st)
{
    SCOPED_BY(arguments_release) struct arguments words = {0};
    SCOPED_BUF said = BUF_INIT;
    for (int i = 0; i < out->flags.count && out->flags.items[i][0] != '-'; i++)
        arguments_add(&words, out->flags.items[i]); /* the compiler behind a wrapper */
    if (compiler_version(out->path, &words, CPU_COMPILER_ADVICE, request->stop, &said, st) != 0)
        return -1;
    identity_add_file(out->path, identity);
    buf_adds(identity, said.ptr);
    snprintf(out->where.compiler, sizeof(out->where.compiler), "%s",
             strstr(said.ptr, "clang") != NULL ? "clang" : "gcc"); /* until the probe says it */
    return 0;
}

static int find_compiler(const struct toolchain_request *request, struct toolchain *out,
                         struct buf *identity, struct status *st)
{
    const char *by, *name = chosen_compiler(request->compiler, &by);
    SCOPED_BY(arguments_release) struct arguments words = {0};
    struct buf path = BUF_INIT;
    bool found = find_program(name, &words, &path);
    out->path = buf_detach(&path);
    add_flags(&words, &out->flags);
    if (!found)
        return status_set(st, STATUS_ENVIRONMENT,
                          "%s%sno compiler '%s' found; %s, or name another with --compiler or "
                          "FUSEPLAN_CC",
                          by != NULL ? by : "", by != NULL ? ": " : "", name, CPU_COMPILER_ADVICE);
    return read_version(request, out, identity, st);
}

/* Runs the built probe in a worker and takes the names of libraries and compiler from what it
 * answers. */
static int run_probe(const struct toolchain_request *request, const char *library,
                     struct toolchain *out, struct status *st)
{
    json_auto_t *said = NULL;
    struct status why = STATUS_INIT;
    int result = worker_ask(request, "--probe", library, true, &said, &why);
    const char *libraries = json_string_value(json_object_get(said, "libraries"));
    const char *openmp = json_string_value(json_object_get(said, "openmp"));
    const char *version = json_string_value(json_object_get(said, "compiler"));
    if (why.code == STATUS_INTERRUPTED)
        result = status_set(st, why.code, "%s", why.message);
    else if (libraries == NULL || libraries[0] == '\0')
        result =
            status_set(st, STATUS_ENVIRONMENT,
                       "a program built with %s, OpenMP and OpenBLAS does not run: %s; %s",
                       out->path, result != 0 ? why.message : "a result was wrong",
                       why.code == STATUS_ENVIRONMENT ? MACHINE_QUESTION : CPU_COMPILER_ADVICE);
    else
        snprintf(out->where.libraries, sizeof(out->where.libraries), "%s", libraries);
    if (version != NULL)
        snprintf(out->where.compiler, sizeof(out->where.compiler), "%s", version);
    if (openmp != NULL && strstr(openmp, "libgomp") == NULL) /* the worker's own is gcc's */
        snprintf(out->openmp, sizeof(out->openmp), "%s", openmp);
    return result;
}

static int check_address_space(struct status *st)
{
    struct rlimit space;
    char bytes[32], least[32];
    const int threads = cpu_threads();
    const uint64_t needed = THREAD_MAP_BYTES * (uint64_t)(threads + 1);
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY ||
        space.rlim_cur >= needed)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "a process may map only %s of memory, and OpenBLAS on %d thread%s needs %s; "
                      "raise the limit with 'ulimit -v'",
                      number_bytes(space.rlim_cur, bytes), threads, threads > 1 ? "s" : "",
                      number_bytes(needed, least));
}

static int prove(const struct toolchain_request *request, const struct cache *c,
                 struct toolchain *out, struct status *st)
{
    char key[HASH_TEXT_SIZE];
    struct status failed = STATUS_INIT;
    if (compile_probe(out, c, request, key, &failed) != 0) {
        if (failed.code == STATUS_INTERRUPTED || failed.code == STATUS_ENVIRONMENT)
            *st = failed; /* such as a full disk: not the compiler's fault */
        return status_set(st, STATUS_ENVIRONMENT,
                          "'%s' builds no program with OpenMP and OpenBLAS; %s (%s)", out->path,
                          strcmp(out->where.compiler, "clang") == 0 ? CLANG_ADVICE
                                                                    : CPU_COMPILER_ADVICE,
                          failed.message);
    }
    SCOPED_BUF path = BUF_INIT;
    cache_path(c, CACHE_BINARY, key, &path);
    return run_probe(request, path.ptr, out, st);
}

int cpu_compiler_find(const struct toolchain_request *request, const struct cache *c,
                      struct toolchain *out, struct status *st)
{
    *out = (struct toolchain){.kind = TARGET_CPU,
                              .probe = probe_source,
                              .source_suffix = ".c",
                              .binary_suffix = ".so",
                              .max_memory_bytes = COMPILER_MAX_BYTES};
    arguments_add_words(&out->libs, CPU_LIBRARIES);
    SCOPED_BUF identity = BUF_INIT;
    struct cpu_info cpu;
    cpu_info_read(&cpu);
    if (check_address_space(st) != 0)
        return -1;
    if (!file_may_run(c->dir))
        return status_set(st, STATUS_ENVIRONMENT,
                          "the cache of compiled code, '%s', is on a file system that is mounted "
                          "noexec: nothing can be run there; set FUSEPLAN_CACHE to a directory "
                          "on another one",
                          c->dir);
    if (find_compiler(request, out, &identity, st) != 0)
        return -1;
    buf_addf(&identity, "%s %s\n", cpu.model, cpu.flags_hash);
    arguments_text(&out->flags, &identity);
    buf_addf(&identity, " %s\n", CPU_LIBRARIES);
    hash_text(identity.ptr, identity.len, out->identity);
    return prove(request, c, out, st);
}
