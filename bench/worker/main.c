/* fuseplan-worker: started by fuseplan, never by hand.
 *
 *   fuseplan-worker --serve         serves its parent over the inherited socket
 *   fuseplan-worker --probe FILE    loads a library and asks it: {"libraries", "openmp"}
 *   fuseplan-worker --cuda-probe N  describes a GPU
 *   fuseplan-worker --cublas-version
 *   fuseplan-worker --nvrtc-version
 *   fuseplan-worker --nvrtc LIBRARY OPTION... -o OUT SRC
 *
 * An answer is a line of stdout, WORKER_ANSWER; reasons for none are on stderr.  nvidia_int.h
 * describes the last four. */
#include "bench/worker/nvidia_int.h"
#include "bench/worker/worker_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *probe(const char *path)
{
    const char *(*report)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        *(void **)&report = dlsym(library, "fuseplan_probe");
    if (report == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    json_t *out = json_pack("{s:s}", "libraries", report());
    *(void **)&report = dlsym(library, "fuseplan_probe_openmp");
    if (report != NULL)
        json_object_set_new(out, "openmp", json_string(report()));
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
