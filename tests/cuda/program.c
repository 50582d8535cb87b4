/* Writes into DIR/program the program of a plan whose GEMMs are kernels of ours, and into
 * DIR/arrays what that plan computes in the worker: both must give the same y, see device.sh. */
#include "request.h"
#include "tests/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: cuda_program " REQUEST_USAGE "  -o DIR   where to write\n";

static const char *directory = ".";

static void option(int letter, const char *value)
{
    (void)letter;
    directory = value;
}

/* The defaults where there is no library. */
static void choose(const struct build_target *t, struct candidate *out)
{
    struct status st = STATUS_INIT;
    struct build_target own = *t;
    struct plan p;
    own.library = false;
    if (plan_parse_segments("2-6,7-8,10-11,12-13", false, &p, &st) != 0)
        give_up(&st);
    candidate_default(&own, p, out);
}

static const char *path_of(const char *name, struct buf *path)
{
    buf_reset(path);
    buf_addf(path, "%s/%s", directory, name);
    return path->ptr;
}

static void write_program(const struct request *r, const struct build_target *t,
                          const struct candidate *c, struct buf *path)
{
    struct status st = STATUS_INIT;
    struct standalone p;
    struct workload full = r->workload; /* a call gives lengths */
    full.lengths = NULL;
    block_lists_build(&full.mask, full.batch, NULL, &full.blocks);
    const struct drawing drawn = {r->options.inputs.seed, r->options.inputs.ranges};
    const struct standalone_plan plan = {.workload = &r->workload, .full = &full, .candidate = c};
    const struct standalone_spec spec = {.target = *t,
                                         .archs = {.count = 1, .arch = {t->arch}},
                                         .name = STANDALONE_NAME,
                                         .plans = &plan,
                                         .count = 1,
                                         .inputs = &drawn};
    standalone_emit(&spec, &p);
    file_make_dirs(path_of("program", path), &st);
    for (int i = 0; i < p.count && st.code == STATUS_OK; i++) {
        struct buf name;
        buf_init(&name);
        buf_addf(&name, "program/%s", p.files[i].name);
        file_write(path_of(name.ptr, path), p.files[i].text.ptr, p.files[i].text.len, &st);
        buf_release(&name);
    }
    if (st.code != STATUS_OK)
        give_up(&st);
    block_lists_release(&full.blocks);
    standalone_release(&p);
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct candidate c;
    struct request r;
    struct bench *b;
    struct buf path;
    buf_init(&path);
    request_read(&r, argc, argv, usage, "o:", option);
    if (bench_open(&r.options, &r.workload, &b, &st) != 0)
        give_up(&st);
    choose(bench_target(b), &c);
    write_program(&r, bench_target(b), &c, &path);
    if (bench_dump(b, &c, path_of("arrays", &path), false, &st) != 0)
        give_up(&st);
    buf_release(&path);
    bench_close(b);
    request_release(&r);
    return EXIT_SUCCESS;
}
