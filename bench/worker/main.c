/* fuseplan-worker: started by fuseplan, never by hand.
 *
 *   fuseplan-worker --serve         serves its parent over the inherited socket
 *   fuseplan-worker --probe FILE    loads a library and asks it: {"libraries", "openmp",
 * "compiler"} fuseplan-worker --cuda-probe N  describes a GPU fuseplan-worker --cublas-version
 *   fuseplan-worker --nvrtc-version
 *   fuseplan-worker --nvrtc LIBRARY OPTION... -o OUT SRC
 *
 * An answer is a line of stdout, WORKER_ANSWER; reasons for none are on stderr.  nvidia_int.h
 * describes the last four. */
#include "bench/worker/nvidia_int.h"
#include "bench/worker/worker_int.h"

#include <dlfcn.h>

static json_t *probe(const char *path)
{
    static const char *const questions[][2] = {{"libraries", "fuseplan_probe"},
                                               {"openmp", "fuseplan_probe_openmp"},
                                               {"compiler", "fuseplan_probe_compiler"}};
    const char *(*answer)(void);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    json_t *out = json_object();
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        answer = NULL;
        if (library != NULL)
            *(void **)&answer = dlsym(library, questions[i][1]);
        if (answer == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, questions[i][0], json_string(answer()));
    }
    return out;
}

/* Prints a report and takes it over; null is a failure. */
static int print(json_t *report)
{
    if (report == NULL)
        return EXIT_FAILURE;
    fputs("\n" WORKER_ANSWER, stdout);
    json_dumpf(report, stdout, JSON_COMPACT);
    puts("");
    json_decref(report);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (!file_hold_standard())
        return EXIT_FAILURE;
    json_set_alloc_funcs(mem_unset, free);
    if (argc == 2 && strcmp(argv[1], "--serve") == 0)
        return worker_serve(WORKER_CHANNEL, WORKER_MASK);
    if (argc == 3 && strcmp(argv[1], "--probe") == 0)
        return print(probe(argv[2]));
    if (argc == 3 && strcmp(argv[1], "--cuda-probe") == 0)
        return print(cuda_probe((int)strtol(argv[2], NULL, 10)));
    if (argc == 2 && strcmp(argv[1], "--cublas-version") == 0)
        return print(cublas_version());
    if (argc == 2 && strcmp(argv[1], "--nvrtc-version") == 0)
        return print(nvrtc_version());
    if (argc > 2 && strcmp(argv[1], "--nvrtc") == 0)
        return nvrtc_compile(argc - 2, argv + 2);
    fputs("fuseplan-worker: started by fuseplan, not by hand\n", stderr);
    return 2;
}
