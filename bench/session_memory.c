/* How much memory a workload takes, and how much a worker may map. */
#include "bench/bench_int.h"

/* Beside the plan's memory and what the oracle gives of the first layer of each kind, there are q,
 * k and v in double while it computes, and k once more, and inputs and outputs of later layers. */
static double memory_needed(const struct workload *w)
{
    double x = (double)tensor_elements(TENSOR_X, w), qkvk = 4 * x;
    return workload_bytes(w) + sizeof(double) * qkvk +
           2 * sizeof(float) * x * w->chain->carried_count * w->layers;
}

uint64_t session_memory_bound(enum target_kind target, const struct workload *w)
{
#ifdef __SANITIZE_ADDRESS__
    const bool bounded = false;
#else
    const bool bounded = true;
#endif
    const double thread_bytes = 256 << 20, code_bytes = 1 << 30;
    int threads = 2 * (cpu_threads() + 1);
    double bytes = 2 * memory_needed(w) + threads * thread_bytes + code_bytes;
    return bounded && target == TARGET_CPU && bytes < 1e18 ? (uint64_t)bytes : 0;
}

int bench_check_memory(const struct workload *w, struct status *st)
{
    double need = memory_needed(w);
    uint64_t have = mem_available_bytes();
    if (need <= (double)have)
        return 0;
    char need_text[32], have_text[32];
    return status_set(st, STATUS_ENVIRONMENT,
                      "this workload needs about %s of memory to run and verify, and %s is "
                      "available; choose a smaller batch, sequence length or number of layers",
                      number_bytes(need < 1e18 ? (uint64_t)need : (uint64_t)1e18, need_text),
                      number_bytes(have, have_text));
}
