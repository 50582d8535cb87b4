#include "cmd/options_int.h"
#include "cmd/plans.h"

static int set_lengths(const struct options *o, struct workload *w, struct status *st)
{
    if (o->lengths != NULL && options_has(o, OPT(AVG_SEQ_LEN)))
        return status_set(st, STATUS_USAGE,
                          "--lengths and --avg-seq-len are given at once; give one of them");
    if (o->lengths != NULL)
        return workload_parse_lengths(w, o->lengths, st);
    if (options_has(o, OPT(AVG_SEQ_LEN)))
        return workload_draw_lengths(w, o->avg_seq_len, o->seed, st);
    return 0;
}

int workload_read_mask(const struct options *o, struct workload *w, struct status *st)
{
    enum { NPY_HEADER_MAX = 65536 };
    const char *path = w->mask_spec.path;
    SCOPED_BUF npy = BUF_INIT;
    /* An array of float64 is read too, to say what makes a mask of it. */
    size_t most = sizeof(double) * (size_t)w->batch * (size_t)w->seq_len * (size_t)w->seq_len +
                  NPY_HEADER_MAX;
    int result = path != NULL ? file_read(path, most, &npy, st) : 0;
    if (result != 0 && st->code == STATUS_USAGE) /* it is too large */
        status_prefix(st, "an attention mask is an array of bool (%d,%d) or (%d,%d,%d)", w->seq_len,
                      w->seq_len, w->batch, w->seq_len, w->seq_len);
    if (result != 0 || workload_build_mask(w, path != NULL ? &npy : NULL, st) != 0)
        return -1;
    if (w->mask.empty_rows > 0)
        note(o, "rows of attention mask '%s' that keep no key: %lld; their attention is zero",
             path != NULL ? path : o->mask, (long long)w->mask.empty_rows);
    if (path != NULL && mask_name(&w->mask, &w->mask_spec)) {
        buf_reset(&npy);
        mask_text(&w->mask_spec, &npy);
        note(o, "%s has the bits of the attention mask '%s', and is taken for it", o->mask,
             npy.ptr);
    }
    return 0;
}

static int set_local(const struct options *o, struct workload *w, struct status *st)
{
    char mask[32];
    snprintf(mask, sizeof(mask), "sliding:w=%d", o->local_width);
    bool given = o->local_mask != NULL && strcmp(o->local_mask, "none") != 0;
    bool none = !given && o->local_width < 0;
    if (none && options_has(o, OPT(LOCAL_ROPE) | OPT(GLOBAL_EVERY)))
        return status_set(
            st, STATUS_USAGE,
            "%s says what local layers are, and there are none; add --local-mask MASK",
            options_has(o, OPT(LOCAL_ROPE)) ? "--local-rope" : "--global-every");
    if (none)
        return 0;
    if (o->global_every == 0)
        return status_set(st, STATUS_USAGE,
                          "--local-mask without the layers that are global; add --global-every N");
    if (o->rope == 0 && options_has(o, OPT(LOCAL_ROPE)))
        return status_set(st, STATUS_USAGE,
                          "--local-rope without --rope; layers rotate all or none");
    return workload_add_local(w, given ? o->local_mask : mask,
                              o->local_rope > 0 ? o->local_rope : o->rope, o->global_every, st);
}

static int require_shape(const struct options *o, struct status *st)
{
    bool batch = options_has(o, OPT(BATCH)), seq_len = options_has(o, OPT(SEQ_LEN));
    if (batch && seq_len)
        return 0;
    return status_set(st, STATUS_USAGE,
                      "the batch size or the sequence length is not given; add %s%s%s",
                      batch ? "" : "-b N", batch || seq_len ? "" : " and ", seq_len ? "" : "-s N");
}

int workload_read(const struct options *o, struct target_name *target, struct workload *w,
                  struct status *st)
{
    workload_init(w);
    if (require_shape(o, st) != 0 || target_parse(o->target, target, st) != 0)
        return -1;
    w->dtype = options_has(o, OPT(DTYPE)) ? o->dtype : target_default_dtype(target->kind);
    if (target_check_dtype(target->kind, w->dtype, st) != 0)
        return -1;
    w->batch = o->batch;
    w->seq_len = o->seq_len;
    w->heads = o->heads;
    w->head_size = o->head_size;
    w->hidden = o->hidden;
    w->layers = o->layers;
    w->ffn = o->ffn;
    w->eps = o->eps;
    w->chain = chain_from_options(o);
    w->rope_theta = o->rope;
    w->rope_factor = o->rope_factor;
    mask_spec_release(&w->mask_spec);
    if (mask_parse(o->mask, &w->mask_spec, st) != 0 || set_lengths(o, w, st) != 0 ||
        set_local(o, w, st) != 0)
        return -1;
    return workload_check(w, st);
}

int workload_from_options(const struct options *o, bool build, struct target_name *target,
                          struct workload *w, struct status *st)
{
    if (workload_read(o, target, w, st) != 0)
        return -1;
    return build || w->mask_spec.path != NULL ? workload_read_mask(o, w, st) : 0;
}

int model_of_workload(const struct options *o, bool *out, struct status *st)
{
    *out = options_has(o, OPTS_WORKLOAD & ~OPT(SEED));
    if (*out && options_has(o, OPT(NAME)))
        return status_set(st, STATUS_USAGE,
                          "--name '%s' with a workload, whose only model has no name; "
                          "leave one of them out",
                          o->name);
    return 0;
}

/* What a study is compared with; the texts live until the next call.  A worker says what a GPU is,
 * so a table of many rows asks it once. */
static struct db_study near_here(const struct options *o, struct target_name target)
{
    static struct fingerprint here;
    static struct target_name asked;
    static bool known;
    if (!known || asked.kind != target.kind || asked.device != target.device)
        fingerprint_device(target, &here);
    known = true;
    asked = target;
    return (struct db_study){.target = {.device = here.device,
                                        .uuid = here.uuid,
                                        .capability = here.capability,
                                        .units = here.units,
                                        .driver = here.driver},
                             .protocol = here.protocol,
                             .init = ranges_names[o->ranges]};
}

/* Says what is missing, the search that measures it, and what is known. */
static void refuse_missing(const struct options *o, struct db *db, const struct status *missing,
                           struct status *st)
{
    struct status with = STATUS_INIT;
    SCOPED_BUF search = BUF_INIT;
    options_command(o, "search", OPTS_PLANS, &search);
    status_set(&with, missing->code, "%s; '%s' measures it", missing->message, search.ptr);
    known_refuse(db, &with, st);
}

int study_of_workload(const struct options *o, struct db *db, struct target_name target,
                      const struct workload *w, int64_t *study, struct status *st)
{
    SCOPED_BUF key = BUF_INIT;
    workload_text(w, &key);
    struct db_study near = near_here(o, target);
    struct status missing = STATUS_INIT;
    int result = db_study_find(db, key.ptr, target_names[target.kind], &near, study, &missing);
    if (missing.code == STATUS_NOT_FOUND)
        refuse_missing(o, db, &missing, st);
    else if (result != 0)
        *st = missing;
    return result;
}

/* Which studies stand in, the best first. */
static const struct step_near {
    bool same_device, family;
} steps[] = {{true, false}, {true, true}, {false, false}, {false, true}};

/* The first that the first `count` steps find. */
static int find_near(const struct options *o, struct db *db, struct target_name target,
                     const struct workload *w, size_t count, int64_t *study, struct status *st)
{
    SCOPED_BUF key = BUF_INIT;
    const struct db_workload asked = db_workload_of(w, &key);
    struct db_study near = near_here(o, target);
    int found = 0;
    for (size_t i = 0; i < count && found == 0; i++) {
        struct db_wanted wanted = {.workload = &asked,
                                   .target_kind = target_names[target.kind],
                                   .near = &near,
                                   .same_device = steps[i].same_device,
                                   .family = steps[i].family};
        found = db_study_near(db, &wanted, study, st);
    }
    return found;
}

int study_near_workload(const struct options *o, struct db *db, struct target_name target,
                        const struct workload *w, int64_t *study, struct status *st)
{
    return find_near(o, db, target, w, ARRAY_LEN(steps), study, st);
}

int study_of_device(const struct options *o, struct db *db, struct target_name target,
                    const struct workload *w, int64_t *study, struct status *st)
{
    return find_near(o, db, target, w, 1, study, st);
}

void found_study_close(struct found_study *f)
{
    db_close(f->db);
    free(f->pack);
    *f = (struct found_study){.db = NULL};
}

int archs_from_options(const struct options *o, enum target_kind target, struct arch_list *out,
                       struct status *st)
{
    *out = (struct arch_list){.count = 0};
    if (o->arch == NULL)
        return 0;
    if (target != TARGET_CUDA)
        return status_set(
            st, STATUS_USAGE,
            "--arch names GPU architectures, and the target is %s, which is measured with code for "
            "its own processor; leave --arch out, or add --target cuda",
            target_names[target]);
    return arch_parse_list(o->arch, out, st);
}
