#include "bench/wire/wire.h"

/* A list of all scales, layer by layer; null: there are none. */
static json_t *message_of_scales(const struct calibration *c)
{
    json_t *all = c != NULL ? json_array() : json_null();
    for (int i = 0; c != NULL && i < c->layers * GEMM_COUNT; i++)
        json_array_append_new(all, json_real((double)c->scale[i / GEMM_COUNT][i % GEMM_COUNT]));
    return all;
}

static const struct calibration *message_to_scales(const json_t *m)
{
    const size_t layers = json_array_size(m) / GEMM_COUNT;
    if (layers == 0)
        return NULL;
    struct calibration *c = mem_alloc(1, sizeof(*c));
    *c = (struct calibration){.layers = (int)layers};
    c->scale = mem_alloc(layers, sizeof(*c->scale));
    for (size_t i = 0; i < layers * GEMM_COUNT; i++)
        c->scale[i / GEMM_COUNT][i % GEMM_COUNT] = (float)json_number_value(json_array_get(m, i));
    return c;
}

json_t *message_of_inputs(struct inputs in)
{
    char hash[HASH_TEXT_SIZE] = "";
    if (in.trained != NULL)
        trained_hash(in.trained, hash);
    return json_pack("{s:I, s:i, s:s?, s:s?, s:s, s:o}", "seed", (json_int_t)in.seed, "ranges",
                     (int)in.ranges, "weights",
                     in.trained != NULL ? trained_path(in.trained) : NULL, "weights_prefix",
                     in.trained != NULL ? trained_prefix(in.trained) : NULL, "weights_hash", hash,
                     "scales", message_of_scales(in.calibration));
}

int message_to_inputs(const json_t *m, struct inputs *out, struct status *st)
{
    json_int_t seed;
    int ranges;
    const json_t *path, *prefix; /* path null: the weights are drawn */
    const json_t *scales;
    const char *hash; /* of the file as the sender read it */
    char here[HASH_TEXT_SIZE];
    struct trained *trained = NULL;
    json_error_t error;
    *out = (struct inputs){0};
    if (json_unpack_ex((json_t *)(uintptr_t)m, &error, 0, "{s:I, s:i, s:o, s:o, s:s, s:o}", "seed",
                       &seed, "ranges", &ranges, "weights", &path, "weights_prefix", &prefix,
                       "weights_hash", &hash, "scales", &scales) != 0)
        return status_set(st, STATUS_LAUNCH, "malformed inputs: %s", error.text);
    if (json_is_string(path) &&
        trained_open(json_string_value(path), json_string_value(prefix), &trained, st) != 0)
        return -1;
    if (trained != NULL && strcmp(trained_hash(trained, here), hash) != 0) {
        trained_close(trained);
        return status_set(
            st, STATUS_ENVIRONMENT,
            "the weights '%s' have changed since they were read; run the command again",
            json_string_value(path));
    }
    *out = (struct inputs){(uint64_t)seed, (enum ranges)ranges, trained, message_to_scales(scales)};
    return 0;
}

void inputs_release(struct inputs *in)
{
    struct calibration *c = (struct calibration *)in->calibration;
    trained_close((struct trained *)in->trained);
    if (c != NULL)
        calibration_release(c);
    free(c);
    *in = (struct inputs){0};
}
