/* Hashes of device memory that the device computes: a copy to the host takes a hundred times as
 * long. */
#include "bench/worker/device_cuda_int.h"

/* At least so many words are a thread's. */
enum { THREADS = 256, WORDS_EACH = 4 };

/* Adds mixed() of all words to *sum, in any order.  In PTX, for which the driver has a compiler, of
 * the oldest GPU that the target takes. */
static const char kernel[] =
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry fuseplan_hash(.param .u64 p_words, .param .u64 p_count, .param .u64 p_sum)\n"
    "{\n"
    "    .reg .pred is;\n"
    "    .reg .b32 block, blocks, thread, threads, low, high, lanes;\n"
    "    .reg .b64 at, count, out, i, step, word, shifted, sum;\n"
    "    ld.param.u64 at, [p_words];\n"
    "    ld.param.u64 count, [p_count];\n"
    "    ld.param.u64 out, [p_sum];\n"
    "    mov.u32 block, %ctaid.x;\n"
    "    mov.u32 blocks, %nctaid.x;\n"
    "    mov.u32 thread, %tid.x;\n"
    "    mov.u32 threads, %ntid.x;\n"
    "    cvt.u64.u32 i, thread;\n"
    "    mad.wide.u32 i, block, threads, i;\n"
    "    mul.wide.u32 step, blocks, threads;\n"
    "    mad.lo.u64 at, i, 8, at;\n"
    "    mov.u64 sum, 0;\n"
    "next:\n"
    "    setp.ge.u64 is, i, count;\n"
    "    @is bra all;\n"
    "    ld.global.u64 word, [at];\n"
    "    mad.lo.u64 at, step, 8, at;\n"
    "    mad.lo.u64 word, i, 0x9e3779b97f4a7c15, word;\n"
    "    add.u64 i, i, step;\n"
    "    shr.u64 shifted, word, 30;\n"
    "    xor.b64 word, word, shifted;\n"
    "    mul.lo.u64 word, word, 0xbf58476d1ce4e5b9;\n"
    "    shr.u64 shifted, word, 27;\n"
    "    xor.b64 word, word, shifted;\n"
    "    mul.lo.u64 word, word, 0x94d049bb133111eb;\n"
    "    shr.u64 shifted, word, 31;\n"
    "    xor.b64 word, word, shifted;\n"
    "    add.u64 sum, sum, word;\n"
    "    bra next;\n"
    "all:\n" /* the sums of a warp's 32 threads become that of its first one */
    "    mov.u32 lanes, 16;\n"
    "fold:\n"
    "    mov.b64 {low, high}, sum;\n"
    "    shfl.sync.down.b32 low, low, lanes, 31, 0xffffffff;\n"
    "    shfl.sync.down.b32 high, high, lanes, 31, 0xffffffff;\n"
    "    mov.b64 word, {low, high};\n"
    "    add.u64 sum, sum, word;\n"
    "    shr.u32 lanes, lanes, 1;\n"
    "    setp.ne.u32 is, lanes, 0;\n"
    "    @is bra fold;\n"
    "    and.b32 thread, thread, 31;\n"
    "    setp.ne.u32 is, thread, 0;\n"
    "    @is ret;\n"
    "    red.global.add.u64 [out], sum;\n"
    "    ret;\n"
    "}\n";

/* Word i as a number that any other word, or place of it, hardly has: splitmix64. */
static uint64_t mixed(uint64_t word, uint64_t i)
{
    word += i * 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

/* 0 with the sum of the words at `memory`, or the driver's error. */
static int sum_words(struct device *d, unsigned long long memory, uint64_t words, uint64_t *out)
{
    const int most = d->units * (d->unit_threads / THREADS);
    const uint64_t wanted = words / ((uint64_t)THREADS * WORDS_EACH) + 1;
    void *params[] = {&memory, &words, &d->hash_sum};
    const struct cuda_launch_config config = {
        .grid = {wanted < (uint64_t)most ? (unsigned)wanted : (unsigned)most, 1, 1},
        .block = {THREADS, 1, 1},
        .stream = d->stream,
    };
    int error = d->cu->cuMemsetD8Async(d->hash_sum, 0, sizeof(*out), d->stream);
    if (error == CUDA_SUCCESS)
        error = d->cu->cuLaunchKernelEx(&config, d->hash, params, NULL);
    if (error == CUDA_SUCCESS)
        memcpy(out,
               cuda_view(d, cuda_pointer(d->hash_sum), (int64_t)sizeof(*out) / d->element_bytes),
               sizeof(*out));
    return error;
}

/* Whether the device computes the host's sum of words that all differ. */
static bool is_right(struct device *d)
{
    enum { WORDS = 4099 };
    uint64_t words[WORDS], sum = 0, found = 0;
    struct status lacks = STATUS_INIT;
    unsigned long long at;
    for (uint64_t i = 0; i < WORDS; i++) {
        words[i] = mixed(i, ~i);
        sum += mixed(words[i], i);
    }
    if (cuda_copy(d, words, sizeof(words), &at, &lacks) != 0)
        return false;
    int error = sum_words(d, at, WORDS, &found);
    cuda_free(d, cuda_pointer(at));
    return error == CUDA_SUCCESS && found == sum;
}

void cuda_hash_open(struct device *d)
{
    struct CUmod_st *module;
    struct status lacks = STATUS_INIT;
    bool found = d->cu->cuModuleLoadData(&module, kernel) == CUDA_SUCCESS &&
                 d->cu->cuModuleGetFunction(&d->hash, module, "fuseplan_hash") == CUDA_SUCCESS &&
                 cuda_take(d, sizeof(uint64_t), &d->hash_sum, &lacks) == 0 && is_right(d);
    if (!found)
        d->hash = NULL;
}

bool cuda_hash(struct device *d, const void *memory, int64_t bytes, uint64_t *out)
{
    const int64_t word = sizeof(*out);
    if (d->hash == NULL || bytes % word != 0)
        return false;
    cuda_must(d, sum_words(d, (unsigned long long)(uintptr_t)memory, (uint64_t)(bytes / word), out),
              "hashing GPU memory");
    return true;
}
