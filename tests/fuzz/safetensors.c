/* A file of tensors, as an exported library's example reads it. */
#include "kernels/library/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors f;
    if (safetensors_parse(data, size, &f) != 0) {
        fuzz_require(f.error[0] != '\0', "a file is refused with a reason");
        safetensors_close(&f);
        return 0;
    }
    uint64_t end = 0, left = size - (size_t)(f.data - data);
    for (size_t i = 0; i < f.count; i++) {
        const struct safetensor *t = &f.tensors[i];
        char *name = strndup(t->name, t->name_len);
        fuzz_require(t->begin == end && t->end >= t->begin && t->end <= left,
                     "tensors stand one behind the other in the file");
        fuzz_require(safetensors_find(&f, name) == t, "a tensor is found by its name");
        end = t->end;
        free(name);
    }
    fuzz_require(end == left, "tensors fill the file");
    safetensors_close(&f);
    return 0;
}
