/* An entry of the cache of compiled code.  The first byte says of which kind, and whether the hash
 * at its end is right. */
#include "bench/compile/compile.h"
#include "tests/stress/fuzz/fuzz.h"

static const char key[] = "00112233445566778899aabbccddeeff";

/* proc/: a system that says what the answer of a GPU depends on. */
struct place {
    struct cache cache;
    char device[HASH_TEXT_SIZE]; /* the key of that answer */
};

static const struct place *place_once(void)
{
    static struct place p;
    struct status st = STATUS_INIT;
    if (!fuzz_enter_dir())
        return &p;
    fuzz_require(cache_open("cache", &p.cache, &st) == 0 &&
                     file_make_dirs("proc/sys/kernel/random", &st) == 0 &&
                     file_make_dirs("proc/driver/nvidia", &st) == 0,
                 "there is a cache");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    fuzz_write("proc/sys/kernel/random/boot_id", "1\n", 2);
    fuzz_write("proc/driver/nvidia/version", "2\n", 2);
    static const char origin[] = "1\n2\ndevice=0\n";
    hash_text(origin, sizeof(origin) - 1, p.device);
    return &p;
}

static void read_as(const struct place *p, enum cache_kind kind, bool sealed)
{
    SCOPED_BUF text = BUF_INIT;
    struct resources resources;
    struct gpu gpu;
    struct status st = STATUS_INIT;
    const struct toolchain_request request = {.worker = "/nonexistent"};
    char hash[HASH_TEXT_SIZE];
    if (kind == CACHE_DEVICE)
        gpu_recall(&request, &p->cache, "proc", &gpu, &st);
    else if (cache_get(&p->cache, kind, key, &text, hash))
        ptxas_read(text.ptr, &resources);
    else
        fuzz_require(!sealed, "an entry that was sealed is found");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct place *p = place_once();
    struct fuzz_bytes in = {data, size};
    uint32_t first = fuzz_take(&in, 1);
    enum cache_kind kind = first % CACHE_KIND_COUNT;
    bool sealed = first >= 64;
    SCOPED_BUF path = BUF_INIT, entry = BUF_INIT;
    char hash[HASH_TEXT_SIZE];
    buf_add(&entry, in.at, in.left);
    if (sealed)
        buf_add(&entry, hash_text(in.at, in.left, hash), HASH_TEXT_SIZE - 1);
    cache_path(&p->cache, kind, kind == CACHE_DEVICE ? p->device : key, &path);
    fuzz_write(path.ptr, entry.ptr, entry.len);
    read_as(p, kind, sealed);
    return 0;
}
