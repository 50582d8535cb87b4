/* A file of tensors as an exported library's example reads it, its layers, and an index of shards.
 */
#include "kernels/library/safetensors_int.h"
#include "kernels/library/weights.h"
#include "tests/stress/fuzz/fuzz.h"

static int by_place(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin) + (x->end > y->end) - (x->end < y->end);
}

static void check_tensors(const struct safetensors *f, const uint8_t *end)
{
    uint64_t at = 0;
    SCOPED struct safetensor *placed = mem_alloc(f->count + 1, sizeof(*placed));
    for (size_t i = 0; i < f->count; i++) {
        const struct text name = {f->tensors[i].name, f->tensors[i].name_len};
        fuzz_require(safetensors_find_text(f, name) == &f->tensors[i],
                     "a tensor is found by its name");
        placed[i] = f->tensors[i];
    }
    qsort(placed, f->count, sizeof(*placed), by_place);
    for (size_t i = 0; i < f->count; i++) {
        fuzz_require(placed[i].begin == at && placed[i].end >= at &&
                         placed[i].data + (placed[i].end - at) <= end,
                     "tensors stand one behind the other in the file");
        at = placed[i].end;
    }
    fuzz_require(f->count == 0 || placed[f->count - 1].data +
                                          (placed[f->count - 1].end - placed[f->count - 1].begin) ==
                                      end,
                 "tensors fill the file");
}

/* Reads the layers in sizes that the file's last module of layer 0 has, for a chain that takes its
 * functions and for one that has all. */
static void read_layers(const struct weights_file *f)
{
    enum { FFN2 = 12, SIZE_MOST = 64, SEQ_LEN = 5 };
    char error[WEIGHTS_ERROR];
    const struct safetensor *down = f->tensors[FFN2]; /* (D,F) or (F,D) */
    struct weights_as as = {.dtype = ENCODER_FP16, .heads = 1, .layers = 2, .seq_len = SEQ_LEN};
    if (down->dims != 2 || down->shape[0] > SIZE_MOST || down->shape[1] > SIZE_MOST)
        return;
    as.head_size = (int)down->shape[0];
    as.ffn = (int)down->shape[1];
    SCOPED uint16_t *out = mem_alloc((size_t)3 * SIZE_MOST * SIZE_MOST, sizeof(*out));
    for (as.functions = 0; as.functions < 32; as.functions++)
        for (int i = 0;
             i < weights_layers(f, &as) * WEIGHTS_ARRAYS && weights_check(f, &as, error) == 0; i++)
            if (i % WEIGHTS_ARRAYS != WEIGHTS_BIAS_TABLE - 1 &&
                weights_read(f, &as, i / WEIGHTS_ARRAYS, i % WEIGHTS_ARRAYS, out, error) != 0)
                fuzz_require(error[0] != '\0', "a weight is refused with a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weights_file f = {.layers = 0};
    struct safetensors_index index;
    if (safetensors_parse(data, size, &f.file) != 0) {
        fuzz_require(f.file.error[0] != '\0', "a file is refused with a reason");
    } else {
        check_tensors(&f.file, data + size);
        if (weights_find(NULL, &f) == 0)
            read_layers(&f);
        else
            fuzz_require(f.error[0] != '\0', "a model is refused with a reason");
    }
    weights_close(&f);
    if (safetensors_index_parse(data, size, &index) != 0)
        fuzz_require(index.error != NULL, "an index is refused with a reason");
    for (size_t i = 0; i < index.count && index.error == NULL; i++)
        fuzz_require(index.entries[i].shard_len > 0 &&
                         memchr(index.entries[i].shard, '/', index.entries[i].shard_len) == NULL,
                     "a shard is in the directory of its index");
    safetensors_index_release(&index);
    return 0;
}
