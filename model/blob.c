#include "model/model_int.h"

#include <assert.h>
#include <string.h>

enum { BLOB_FORMAT = 1 };
static const char blob_magic[8] = "FUSEMODL";

/* Stands in front of the two boosters, little-endian and without gaps.  The hash is that of the
 * whole blob with zeros in the place of the hash. */
struct header {
    char magic[8];
    uint32_t format, features_version, features, rounds;
    uint64_t seed;
    double quantile, threshold_ms;
    struct baseline baseline;
    uint64_t regressor_bytes, classifier_bytes;
    char hash[HASH_TEXT_SIZE - 1];
};
static_assert(sizeof(struct header) == 128, "stored bytes must not depend on padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is stored as it is in memory");

/* Writes the hash of the blob at `start` into its header. */
static void seal(struct buf *blob, size_t start)
{
    char *hash_at = blob->ptr + start + offsetof(struct header, hash), hash[HASH_TEXT_SIZE];
    memset(hash_at, 0, HASH_TEXT_SIZE - 1);
    hash_text(blob->ptr + start, blob->len - start, hash);
    memcpy(hash_at, hash, HASH_TEXT_SIZE - 1);
}

int model_save(const struct model *m, struct buf *out, struct status *st)
{
    struct buf regressor, classifier;
    buf_init(&regressor);
    buf_init(&classifier);
    int result = -1;
    if (booster_save(m->regressor, "ubj", &regressor, st) == 0 &&
        booster_save(m->classifier, "ubj", &classifier, st) == 0) {
        struct header h = {
            .format = BLOB_FORMAT,
            .features_version = FEATURES_VERSION,
            .features = m->options.features,
            .rounds = (uint32_t)m->options.rounds,
            .seed = m->options.seed,
            .quantile = m->options.quantile,
            .threshold_ms = m->threshold_ms,
            .baseline = m->baseline,
            .regressor_bytes = regressor.len,
            .classifier_bytes = classifier.len,
        };
        size_t start = out->len;
        memcpy(h.magic, blob_magic, sizeof(h.magic));
        buf_add(out, &h, sizeof(h));
        buf_add(out, regressor.ptr, regressor.len);
        buf_add(out, classifier.ptr, classifier.len);
        seal(out, start);
        result = 0;
    }
    buf_release(&regressor);
    buf_release(&classifier);
    return result;
}

static bool hash_is_right(const void *bytes, size_t len)
{
    struct buf copy;
    buf_init(&copy);
    buf_add(&copy, bytes, len);
    seal(&copy, 0);
    bool same = memcmp(copy.ptr, bytes, sizeof(struct header)) == 0;
    buf_release(&copy);
    return same;
}

/* Reads the header; refuses a blob that is damaged or of another version. */
static int check_blob(const void *bytes, size_t len, struct header *h, struct status *st)
{
    if (len < sizeof(*h) || memcmp(bytes, blob_magic, sizeof(blob_magic)) != 0)
        return status_set(st, STATUS_MODEL,
                          "%zu bytes that are not a fuseplan model; train it again", len);
    memcpy(h, bytes, sizeof(*h));
    if (h->format != BLOB_FORMAT)
        return status_set(st, STATUS_MODEL,
                          "the stored model has format %u and this fuseplan reads %d; update "
                          "fuseplan or train it again",
                          h->format, BLOB_FORMAT);
    size_t rest = len - sizeof(*h);
    if (h->regressor_bytes > rest || h->classifier_bytes != rest - h->regressor_bytes)
        return status_set(st, STATUS_MODEL,
                          "the stored model has %zu bytes, not what its header says: it was cut or "
                          "added to; train it again",
                          len);
    if (!hash_is_right(bytes, len))
        return status_set(st, STATUS_MODEL,
                          "the stored model's contents do not match its hash: it is damaged; train "
                          "it again");
    if (h->features_version != FEATURES_VERSION)
        return status_set(st, STATUS_MODEL,
                          "the stored model has features version %u and this fuseplan %d; train it "
                          "again",
                          h->features_version, FEATURES_VERSION);
    return 0;
}

int model_load(const void *bytes, size_t len, struct model **out, struct status *st)
{
    struct header h = {.format = 0};
    *out = NULL;
    if (check_blob(bytes, len, &h, st) != 0)
        return -1;
    struct model *m = mem_alloc(1, sizeof(*m));
    *m = (struct model){
        .options = {.features = (enum feature_set)h.features,
                    .seed = h.seed,
                    .quantile = h.quantile,
                    .rounds = (int)h.rounds},
        .baseline = h.baseline,
        .threshold_ms = h.threshold_ms,
    };
    const char *regressor = (const char *)bytes + sizeof(h);
    const char *classifier = regressor + h.regressor_bytes;
    struct status refused = STATUS_INIT;
    if (model_check_options(&m->options, &refused) != 0) {
        status_set(st, STATUS_MODEL, "the stored model has %s; train it again", refused.message);
    } else {
        int columns = feature_count(m->options.features);
        const struct stored_booster two[] = {{regressor, h.regressor_bytes},
                                             {classifier, h.classifier_bytes}};
        if (boosters_check(two, columns, st) == 0 &&
            booster_load(regressor, h.regressor_bytes, columns, &m->regressor, st) == 0 &&
            booster_load(classifier, h.classifier_bytes, columns, &m->classifier, st) == 0) {
            *out = m;
            return 0;
        }
    }
    model_free(m);
    return -1;
}
