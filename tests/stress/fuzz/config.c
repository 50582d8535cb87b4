/* A model's config.json. */
#include "bench/trained/trained.h"
#include "tests/stress/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_config c;
    struct status st = STATUS_INIT;
    fuzz_enter_dir();
    fuzz_write("config.json", data, size);
    if (model_config_read("config.json", &c, &st) == 0)
        fuzz_require(c.layers >= 1 && c.heads >= 1 && c.head_size >= 1 && c.ffn >= 1 &&
                         c.mask != NULL && chain_check(c.chain, &st) == 0 &&
                         (c.rope_theta == 0 || chain_functions(c.chain).rope),
                     "a config that is read says what layers compute");
    else
        fuzz_require(st.message[0] != '\0', "a config is refused with a reason");
    return 0;
}
