#include "bench/wire/wire.h"

#include <sys/socket.h>

char *message_line(const json_t *message, size_t *len)
{
    char *line = json_dumps(message, JSON_COMPACT);
    if (line == NULL)
        return NULL;
    *len = strlen(line);
    line[(*len)++] = '\n'; /* replaces the NUL: only len bytes are sent */
    return line;
}

bool message_send(int fd, const json_t *message)
{
    size_t len, sent = 0;
    SCOPED char *line = message_line(message, &len);
    if (line == NULL)
        return false;
    while (sent < len) {
        ssize_t n = send(fd, line + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    return sent == len;
}

int message_take(struct buf *received, json_t **out)
{
    *out = NULL;
    char *end = memchr(received->ptr, '\n', received->len);
    if (end == NULL)
        return received->len > MESSAGE_MAX_BYTES ? -1 : 0;
    size_t len = (size_t)(end - received->ptr);
    *out = json_loadb(received->ptr, len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return -1;
    }
    received->len -= len + 1;
    memmove(received->ptr, end + 1, received->len);
    received->ptr[received->len] = '\0';
    return 1;
}

/* As json_unpack(); `what` names the message where it is malformed. */
static int unpack(const json_t *m, const char *what, struct status *st, const char *format, ...)
{
    json_error_t error;
    va_list args;
    va_start(args, format);
    int result = json_vunpack_ex((json_t *)(uintptr_t)m, &error, 0, format, args);
    va_end(args);
    if (result != 0)
        status_set(st, STATUS_LAUNCH, "malformed %s: %s", what, error.text);
    return result;
}

/* Null without lengths. */
static json_t *lengths_json(const struct workload *w)
{
    json_t *lengths = w->lengths != NULL ? json_array() : json_null();
    for (int b = 0; w->lengths != NULL && b < w->batch; b++)
        json_array_append_new(lengths, json_integer(w->lengths[b]));
    return lengths;
}

/* What layers of the second kind have: their mask and base of rotary embeddings. */
static json_t *local_json(const struct workload *w, bool rope)
{
    SCOPED_BUF mask = BUF_INIT;
    mask_text(&w->local->mask_spec, &mask);
    return json_pack("{ss so si}", "mask", mask.ptr, "rope",
                     rope ? json_real(w->local->rope_theta) : json_null(), "every", w->every);
}

/* kinds: of each layer.  "local" only where they are two. */
static json_t *chain_json(const struct workload *w)
{
    const struct chain_functions f = chain_functions(w->chain);
    json_t *kinds = json_array();
    for (int layer = 0; layer < w->layers; layer++)
        json_array_append_new(kinds, json_integer(layer_kind(w, layer)));
    return json_pack("{ss ss ss ss sb so so sb so so*}", "name", w->chain->name, "norm",
                     f.pre ? "pre" : "post", "norm_kind", f.rms ? "rms" : "layer", "activation",
                     op_functions[f.activation].name, "gate", (int)f.gate, "rope",
                     f.rope ? json_real(w->rope_theta) : json_null(), "rope_factor",
                     w->rope_factor > 0 ? json_real(w->rope_factor) : json_null(), "score_bias",
                     (int)f.score_bias, "kinds", kinds, "local",
                     w->local != NULL ? local_json(w, f.rope) : NULL);
}

json_t *workload_json(const struct workload *w, enum target_kind target)
{
    SCOPED_BUF mask = BUF_INIT;
    mask_text(&w->mask_spec, &mask);
    json_t *object =
        json_pack("{si si ss si si si si si sf ss ss}", "batch", w->batch, "seq_len", w->seq_len,
                  "mask", mask.ptr, "heads", w->heads, "head_size", w->head_size, "hidden",
                  workload_hidden(w), "ffn", w->ffn, "layers", w->layers, "eps", w->eps, "dtype",
                  dtypes[w->dtype].name, "target", target_names[target]);
    json_object_set_new(object, "lengths", lengths_json(w));
    json_object_set_new(object, "chain", chain_json(w));
    return object;
}

json_t *message_of_workload(const struct workload *w)
{
    json_t *local = w->local != NULL ? message_of_workload(w->local) : NULL;
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:s, s:o, s:f, s:f, s:i, s:i, "
                     "s:I, s:i, s:o*}",
                     "batch", w->batch, "seq_len", w->seq_len, "heads", w->heads, "head_size",
                     w->head_size, "hidden", w->hidden, "ffn", w->ffn, "layers", w->layers, "eps",
                     w->eps, "chain", w->chain->name, "dtype", dtypes[w->dtype].name, "lengths",
                     lengths_json(w), "rope_theta", w->rope_theta, "rope_factor", w->rope_factor,
                     "mask_matrices", w->mask.matrices, "mask_row_words", w->mask.row_words,
                     "mask_empty_rows", (json_int_t)w->mask.empty_rows, "every", w->every, "local",
                     local);
}

static void read_lengths(const json_t *lengths, struct workload *out)
{
    if (!json_is_array(lengths) || (int)json_array_size(lengths) != out->batch)
        return;
    out->lengths = mem_alloc((size_t)out->batch, sizeof(*out->lengths));
    for (int b = 0; b < out->batch; b++)
        out->lengths[b] = (int)json_integer_value(json_array_get(lengths, (size_t)b));
}

int message_to_workload(const json_t *m, uint64_t *bits, struct workload *out, struct status *st)
{
    workload_init(out);
    const char *dtype, *chain;
    json_t *lengths, *local = NULL;
    json_int_t empty_rows;
    if (unpack(m, "workload", st,
               "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:F, s:s, s:s, s:o, s:F, s:F, s:i, s:i, s:I, "
               "s:i, s?o}",
               "batch", &out->batch, "seq_len", &out->seq_len, "heads", &out->heads, "head_size",
               &out->head_size, "hidden", &out->hidden, "ffn", &out->ffn, "layers", &out->layers,
               "eps", &out->eps, "chain", &chain, "dtype", &dtype, "lengths", &lengths,
               "rope_theta", &out->rope_theta, "rope_factor", &out->rope_factor, "mask_matrices",
               &out->mask.matrices, "mask_row_words", &out->mask.row_words, "mask_empty_rows",
               &empty_rows, "every", &out->every, "local", &local) != 0)
        return -1;
    out->dtype = dtype_from_name(dtype);
    out->chain = chain_find(chain);
    if (out->chain == NULL)
        return status_set(st, STATUS_LAUNCH, "malformed workload: there is no chain '%s'", chain);
    read_lengths(lengths, out);

    struct mask *mask = &out->mask;
    mask->seq_len = out->seq_len;
    mask->empty_rows = empty_rows;
    mask->bits = bits;
    mask->borrowed = true;
    block_lists_build(mask, out->batch, out->lengths, &out->blocks);
    cover_build(mask, out->batch, out->lengths, &out->blocks, &out->cover);
    if (local == NULL)
        return 0;
    out->local = mem_alloc(1, sizeof(*out->local));
    return message_to_workload(local, bits + mask_bytes(mask) / sizeof(*bits), out->local, st);
}

json_t *message_of_choice(const struct choice *c)
{
    SCOPED_BUF schedule = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &schedule);
    return json_pack("{s:[i, i], s:s, s:s, s:b}", "ops", c->segment.first, c->segment.last,
                     "implementation", c->impl->name, "schedule", schedule.ptr, "stamped",
                     c->stamped);
}

int message_to_choice(const json_t *m, enum target_kind target, const struct chain *chain,
                      struct choice *out, struct status *st)
{
    struct status why = STATUS_INIT;
    const char *impl, *schedule;
    int first, last, stamped;
    if (unpack(m, "choice", st, "{s:[i, i!], s:s, s:s, s:b}", "ops", &first, &last,
               "implementation", &impl, "schedule", &schedule, "stamped", &stamped) != 0)
        return -1;
    struct segment s = {(int8_t)first, (int8_t)last};
    if (choice_parse(target, chain, s, impl, schedule, out, &why) != 0)
        return status_set(st, STATUS_LAUNCH, "malformed choice: %s", why.message);
    out->stamped = stamped != 0;
    return 0;
}

void choice_name(const struct choice *c, struct buf *out)
{
    buf_addf(out, "segment %d-%d (%s)", c->segment.first, c->segment.last, c->impl->name);
}

json_t *message_of_sampling(const struct sampling *s)
{
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:b, s:b, s:b}", "min_samples", s->min_samples,
                     "max_samples", s->max_samples, "min_seconds", s->min_seconds, "max_seconds",
                     s->max_seconds, "limit_s", s->limit_s, "censor_above_ms", s->censor_above_ms,
                     "beside_first", s->beside_first, "all_layers", s->all_layers, "all_rows",
                     s->all_rows);
}

void sampling_spend(struct sampling *s, double seconds)
{
    const double over_s = 1e-9; /* 0 would mean no limit */
    if (s->limit_s > 0)
        s->limit_s = s->limit_s > seconds ? s->limit_s - seconds : over_s;
}

int message_to_sampling(const json_t *m, struct sampling *out, struct status *st)
{
    int beside_first, all_layers, all_rows;
    if (unpack(m, "sampling", st, "{s:i, s:i, s:F, s:F, s:F, s:F, s:b, s:b, s:b}", "min_samples",
               &out->min_samples, "max_samples", &out->max_samples, "min_seconds",
               &out->min_seconds, "max_seconds", &out->max_seconds, "limit_s", &out->limit_s,
               "censor_above_ms", &out->censor_above_ms, "beside_first", &beside_first,
               "all_layers", &all_layers, "all_rows", &all_rows) != 0)
        return -1;
    out->beside_first = beside_first != 0;
    out->all_layers = all_layers != 0;
    out->all_rows = all_rows != 0;
    return 0;
}

int message_status(const json_t *reply, struct status *st)
{
    const char *code = json_string_value(json_object_get(reply, "code"));
    const char *message = json_string_value(json_object_get(reply, "message"));
    enum status_code found = code != NULL ? status_from_name(code) : STATUS_CODE_COUNT;
    if (found == STATUS_OK)
        return 0;
    if (found == STATUS_CODE_COUNT)
        found = STATUS_LAUNCH;
    return status_set(st, found, "%s", message != NULL ? message : "a reply without a status");
}

static json_t *of_resources(const struct resources *r)
{
    return json_pack("{s:i, s:i, s:i, s:[iii], s:[iii], s:f}", "registers", r->registers,
                     "shared_static", r->shared_static_bytes, "shared_dynamic",
                     r->shared_dynamic_bytes, "grid", r->grid[0], r->grid[1], r->grid[2], "block",
                     r->block[0], r->block[1], r->block[2], "occupancy", r->occupancy);
}

static int to_resources(const json_t *m, struct resources *out, struct status *st)
{
    return unpack(m, "trial", st, "{s:i, s:i, s:i, s:[iii], s:[iii], s:F}", "registers",
                  &out->registers, "shared_static", &out->shared_static_bytes, "shared_dynamic",
                  &out->shared_dynamic_bytes, "grid", &out->grid[0], &out->grid[1], &out->grid[2],
                  "block", &out->block[0], &out->block[1], &out->block[2], "occupancy",
                  &out->occupancy);
}

struct interval trial_ms(const struct trial *t)
{
    return t->status == TRIAL_OK ? t->ms : NO_INTERVAL;
}

void trial_release(struct trial *t)
{
    free(t->samples_ms);
    *t = (struct trial){0};
}

json_t *message_of_trial(const struct trial *t)
{
    json_t *samples = json_array();
    for (int i = 0; i < t->sample_count; i++)
        json_array_append_new(samples, json_real(t->samples_ms[i]));
    /* JSON has no infinity: an infinite error travels as null. */
    json_t *error = isfinite(t->error) ? json_real(t->error) : json_null();
    return json_pack("{s:s, s:s, s:s, s:o, s:i, s:o, s:f, s:f, s:o, s:o}", "status",
                     trial_status_name(t->status), "code", status_name(t->reason.code), "message",
                     t->reason.message, "samples_ms", samples, "layers_timed", t->layers_timed,
                     "error", error, "verify_s", t->verify_s, "time_s", t->time_s, "resources",
                     of_resources(&t->resources), "conditions",
                     message_of_conditions(&t->conditions));
}

static int check_trial(const struct trial *t, const struct sampling *how, struct status *st)
{
    const double ONE_NS = 1e-6; /* in ms; no launch is as short */
    if (how->max_samples > 0 && t->status != TRIAL_FAILED && t->sample_count == 0)
        return status_set(st, STATUS_LAUNCH, "malformed trial: no sample");
    for (int i = 0; i < t->sample_count; i++)
        if (!isfinite(t->samples_ms[i]) || t->samples_ms[i] < ONE_NS)
            return status_set(st, STATUS_LAUNCH, "malformed trial: sample %d is %g ms", i,
                              t->samples_ms[i]);
    if (t->layers_timed < 0 || t->layers_timed > LAYERS_MAX)
        return status_set(st, STATUS_LAUNCH, "malformed trial: %d layers", t->layers_timed);
    if (!isfinite(t->verify_s) || t->verify_s < 0 || !isfinite(t->time_s) || t->time_s < 0 ||
        !(t->error >= 0))
        return status_set(st, STATUS_LAUNCH,
                          "malformed trial: %g s to verify, %g s to time, error %g", t->verify_s,
                          t->time_s, t->error);
    return 0;
}

static void read_samples(const json_t *samples, struct trial *out)
{
    out->sample_count = (int)json_array_size(samples);
    out->samples_ms = mem_alloc((size_t)out->sample_count + 1, sizeof(*out->samples_ms));
    for (int i = 0; i < out->sample_count; i++)
        out->samples_ms[i] = json_number_value(json_array_get(samples, (size_t)i));
    if (out->sample_count > 0)
        out->ms = stats_median(out->samples_ms, (size_t)out->sample_count);
}

int message_to_trial(const json_t *m, const struct sampling *how, struct trial *out,
                     struct status *st)
{
    *out = (struct trial){0};
    const char *status, *code, *message;
    json_t *samples, *error, *resources, *conditions;
    if (unpack(m, "trial", st, "{s:s, s:s, s:s, s:o, s:i, s:o, s:F, s:F, s:o, s:o}", "status",
               &status, "code", &code, "message", &message, "samples_ms", &samples, "layers_timed",
               &out->layers_timed, "error", &error, "verify_s", &out->verify_s, "time_s",
               &out->time_s, "resources", &resources, "conditions", &conditions) != 0 ||
        to_resources(resources, &out->resources, st) != 0)
        return -1;
    out->status = trial_status_from_name(status);
    enum status_code reason = status_from_name(code);
    if (reason != STATUS_OK && reason != STATUS_CODE_COUNT)
        status_set(&out->reason, reason, "%s", message);
    out->error = json_is_number(error) ? json_number_value(error) : INFINITY;
    message_to_conditions(conditions, &out->conditions);
    read_samples(samples, out);
    if (check_trial(out, how, st) == 0)
        return 0;
    trial_release(out);
    return -1;
}
