#include "cmd/cmd.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

volatile sig_atomic_t session_stop;

static void interrupted(int signal)
{
    (void)signal;
    session_stop = 1;
}

/* SA_RESETHAND: the second signal ends the program at once. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the workload ---------------------------------------------------------------------------- */

static int set_dtype(const struct options *o, enum target_kind target, struct workload *w,
                     struct status *st)
{
    w->dtype = o->dtype ? dtype_from_name(o->dtype) : target_default_dtype(target);
    if (w->dtype != DTYPE_COUNT)
        return target_check_dtype(target, w->dtype, st);
    struct buf names;
    buf_init(&names);
    for (int i = 0; i < DTYPE_COUNT; i++)
        buf_addf(&names, "%s%s", i > 0 ? ", " : "", dtypes[i].name);
    status_set(st, STATUS_USAGE, "--dtype: '%s' is unknown; expected one of %s", o->dtype,
               names.ptr);
    buf_release(&names);
    return -1;
}

static int set_lengths(const struct options *o, struct workload *w, struct status *st)
{
    if (o->lengths && options_has(o, OPT(AVG_SEQ_LEN)))
        return status_set(st, STATUS_USAGE,
                          "--lengths and --avg-seq-len at once; give the lengths or draw them");
    if (o->lengths)
        return workload_parse_lengths(w, o->lengths, st);
    if (options_has(o, OPT(AVG_SEQ_LEN)))
        return workload_draw_lengths(w, o->avg_seq_len, o->seed, st);
    return 0;
}

static int build_mask(const struct options *o, struct workload *w, struct status *st)
{
    enum { NPY_HEADER_MAX = 65536 };
    const char *path = w->mask_spec.path;
    struct buf npy;
    buf_init(&npy);
    size_t most = (size_t)w->batch * (size_t)w->seq_len * (size_t)w->seq_len + NPY_HEADER_MAX;
    int rc = path ? file_read(path, most, &npy, st) : 0;
    if (rc == 0)
        rc = workload_build_mask(w, path ? &npy : NULL, st);
    if (rc == 0 && w->mask.empty_rows > 0)
        note(o, "%lld rows of '%s' keep nothing: their attention gives zeros",
             (long long)w->mask.empty_rows, path ? path : o->mask);
    buf_release(&npy);
    return rc;
}

static int require_shape(const struct options *o, struct status *st)
{
    bool batch = options_has(o, OPT(BATCH)), seq_len = options_has(o, OPT(SEQ_LEN));
    if (batch && seq_len)
        return 0;
    return status_set(st, STATUS_USAGE, "no %s given; add %s",
                      batch     ? "sequence length"
                      : seq_len ? "batch size"
                                : "batch size and sequence length",
                      batch     ? "-s N"
                      : seq_len ? "-b N"
                                : "-b N and -s N");
}

/* All but the mask's bits. */
static int read_workload(const struct options *o, struct target_name *target, struct workload *w,
                         struct status *st)
{
    workload_init(w);
    if (require_shape(o, st) < 0 || target_parse(o->target, target, st) < 0 ||
        set_dtype(o, target->kind, w, st) < 0)
        return -1;
    w->batch = o->batch;
    w->seq_len = o->seq_len;
    w->heads = o->heads;
    w->head_size = o->head_size;
    w->layers = o->layers;
    w->ffn = o->ffn;
    w->eps = o->eps;
    mask_spec_release(&w->mask_spec);
    if (mask_parse(o->mask, &w->mask_spec, st) < 0 || set_lengths(o, w, st) < 0)
        return -1;
    return workload_check(w, st);
}

int workload_from_options(const struct options *o, bool build, struct target_name *target,
                          struct workload *w, struct status *st)
{
    if (read_workload(o, target, w, st) < 0)
        return -1;
    return build || w->mask_spec.path ? build_mask(o, w, st) : 0;
}

int model_of_workload(const struct options *o, bool *out, struct status *st)
{
    *out = options_has(o, OPTS_WORKLOAD & ~OPT(SEED));
    if (*out && options_has(o, OPT(NAME)))
        return status_set(st, STATUS_USAGE,
                          "--name '%s' with a workload, which has one model and no name for it; "
                          "leave one of them out",
                          o->name);
    return 0;
}

int study_of_workload(const struct options *o, struct db *db, struct target_name target,
                      const struct workload *w, int64_t *study, struct status *st)
{
    struct buf key;
    buf_init(&key);
    workload_text(w, &key);
    struct fingerprint here;
    fingerprint_device(target, &here);
    struct db_study near = {.target = {.device = here.device,
                                       .uuid = here.uuid,
                                       .capability = here.capability,
                                       .units = here.units,
                                       .driver = here.driver},
                            .protocol = here.protocol,
                            .init = o->notes_init ? "notes" : "uniform"};
    int rc = db_study_find(db, key.ptr, target_names[target.kind], &near, study, st);
    buf_release(&key);
    return rc;
}

/* ---- places to write to ---------------------------------------------------------------------- */

int file_is_writable(const char *what, const char *path, struct status *st)
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
    *out = !d && errno == ENOENT;
    if (*out)
        return 0;
    if (!d)
        return status_set(st, STATUS_ENVIRONMENT, "cannot read directory '%s': %s", dir,
                          strerror(errno));
    int entries = 0;
    while (readdir(d))
        entries++;
    closedir(d);
    *out = entries <= 2; /* . and .. */
    return 0;
}

/* ---- the architectures ----------------------------------------------------------------------- */

int archs_from_options(const struct options *o, enum target_kind target, struct arch_list *out,
                       struct status *st)
{
    *out = (struct arch_list){.count = 0};
    if (!o->arch)
        return 0;
    if (target != TARGET_CUDA)
        return status_set(st, STATUS_USAGE,
                          "--arch names GPUs, and the target is %s; add --target cuda",
                          target_names[target]);
    return arch_parse_list(o->arch, out, st);
}

static int check_one_arch(const struct options *o, const struct arch_list *archs, struct status *st)
{
    if (archs->count <= 1)
        return 0;
    return status_set(st, STATUS_USAGE,
                      "--arch: '%s' are several; a measurement needs one that the device runs",
                      o->arch);
}

/* ---- the session -------------------------------------------------------------------------------
 *
 * Memory is looked at before the mask takes its share.  The database comes last, so that none is
 * made where nothing can be measured. */

int session_open(const struct options *o, uint64_t input_seed, struct session *s, struct status *st)
{
    struct arch_list archs;
    *s = (struct session){.bench = NULL};
    catch_signals();
    if (read_workload(o, &s->target, &s->workload, st) < 0 ||
        archs_from_options(o, s->target.kind, &archs, st) < 0 ||
        check_one_arch(o, &archs, st) < 0 || bench_check_memory(&s->workload, st) < 0 ||
        build_mask(o, &s->workload, st) < 0)
        return -1;
    struct bench_options options = {.target = s->target,
                                    .compiler = o->compiler,
                                    .arch = archs.arch[0],
                                    .jobs = o->jobs,
                                    .seed = input_seed,
                                    .notes_init = o->notes_init,
                                    .stop = &session_stop};
    if (bench_open(&options, &s->workload, &s->bench, st) < 0 ||
        db_open(o->db, DB_WRITE, &s->db, st) < 0 ||
        study_open(s->bench, s->db, input_seed, o->notes_init, &s->study, st) < 0)
        return -1;
    if (options_has(o, OPT(VERBOSE))) {
        const struct fingerprint *f = bench_fingerprint(s->bench);
        note(o, "%s, %s, %d units, %s, %s; database '%s'", f->device, f->capability, f->units,
             f->compiler, f->libraries, db_path(s->db));
    }
    return 0;
}

void session_close(struct session *s)
{
    bench_close(s->bench);
    db_close(s->db);
    workload_release(&s->workload);
}

static void note_line(const struct options *o, const struct disturbance *d,
                      void (*text)(const struct disturbance *d, struct buf *out))
{
    struct buf line;
    buf_init(&line);
    text(d, &line);
    if (line.len > 0)
        note(o, "%s", line.ptr);
    buf_release(&line);
}

void session_note_disturbance(const struct options *o, const struct session *s)
{
    struct disturbance d = bench_disturbance(s->bench);
    note_line(o, &d, disturbance_sharing_text);
    note_line(o, &d, disturbance_slowdown_text);
}
