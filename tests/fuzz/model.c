/* A stored model whose hash is right: the bytes of its boosters are another's.  An odd first byte:
 * the rest takes the place of all that follows the header; an even one: each 4 bytes change one. */
#include "model/model_int.h"
#include "tests/fuzz/fuzz.h"
#include "tests/made_up.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, HASH_AT = 96, HASH_BYTES = 32, HEADER_BYTES = 128 };

struct before {
    struct measured_space *space;
    struct buf blob;
};

static const struct before *before_once(void)
{
    static struct before b;
    struct model *m;
    struct status st = STATUS_INIT;
    if (b.space != NULL)
        return &b;
    b.space = made_up_measured(1);
    const struct model_options o = {
        .features = FEATURES_PLAN, .seed = 1, .quantile = 0.3, .rounds = 2};
    const struct model_data d = {.count = ROWS, .plans = b.space->plans, .ms = b.space->ms};
    buf_init(&b.blob);
    fuzz_require(model_train(&o, &d, &b.space->times, &m, &st) == 0 &&
                     model_save(m, &b.blob, &st) == 0,
                 "a model can be trained");
    model_free(m);
    return &b;
}

static void seal(struct buf *blob)
{
    char hash[HASH_TEXT_SIZE];
    memset(blob->ptr + HASH_AT, 0, HASH_BYTES);
    memcpy(blob->ptr + HASH_AT, hash_text(blob->ptr, blob->len, hash), HASH_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct before *b = before_once();
    struct fuzz_bytes in = {data, size};
    struct model *m;
    struct buf blob;
    struct status st = STATUS_INIT, said = STATUS_INIT;
    double ms[ROWS], high[ROWS];
    buf_init(&blob);
    if (fuzz_take(&in, 1) % 2 == 1) {
        buf_add(&blob, b->blob.ptr, HEADER_BYTES);
        buf_add(&blob, in.at, in.left);
    } else {
        buf_add(&blob, b->blob.ptr, b->blob.len);
        while (in.left > 0) {
            size_t at = fuzz_take(&in, 3) % blob.len;
            blob.ptr[at] = (char)fuzz_take(&in, 1);
        }
    }
    seal(&blob);
    if (model_load(blob.ptr, blob.len, &m, &said) == 0) {
        fuzz_require(model_predict(m, b->space->plans, ROWS, &b->space->times, ms, high, &st) == 0,
                     "a model that was not refused answers");
        model_free(m);
    } else
        fuzz_require(said.code == STATUS_MODEL, "a bad model is the model's failure");
    buf_release(&blob);
    return 0;
}
