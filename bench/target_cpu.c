#include "base/threads.h"
#include "bench/bench_int.h"

#include <unistd.h>

/* Hashes the machine's id or, where the system keeps none, its host name. */
static void machine_hash(char out[HASH_TEXT_SIZE])
{
    SCOPED_BUF text = BUF_INIT;
    char name[256] = "";
    if (file_read("/etc/machine-id", 0, &text, STATUS_IGNORED) != 0 || text.len == 0) {
        gethostname(name, sizeof(name) - 1);
        buf_adds(&text, name);
    }
    hash_text(text.ptr, text.len, out);
}

static void fingerprint(int device, struct fingerprint *out)
{
    (void)device; /* there is only one */
    out->units = cpu_threads();
    struct cpu_info cpu;
    cpu_info_read(&cpu);
    snprintf(out->device, sizeof(out->device), "%s", cpu.model);
    machine_hash(out->uuid);
    snprintf(out->capability, sizeof(out->capability), "%s", cpu.extension);
    snprintf(out->driver, sizeof(out->driver), "%s", cpu.kernel);
    snprintf(out->protocol, sizeof(out->protocol), "%s", PROTOCOL_VERSION);
}

static void check_governor(struct env_list *out)
{
    static const char path[] = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    SCOPED_BUF text = BUF_INIT;
    if (file_exists(path) && file_read(path, 64, &text, STATUS_IGNORED) == 0) {
        text.ptr[strcspn(text.ptr, "\n")] = '\0';
        bool steady = strcmp(text.ptr, "performance") == 0;
        env_add(out, "clock governor", false, steady ? ENV_OK : ENV_WARNING,
                "times vary less under the governor 'performance': "
                "cpupower frequency-set -g performance",
                "%s", text.ptr);
    }
}

static void check_load(struct env_list *out)
{
    const struct timespec while_s = {.tv_nsec = 100000000};
    const double busy_most = 0.3; /* cores */
    double begin_s = clock_seconds(), busy_s = cpu_busy_seconds();
    nanosleep(&while_s, NULL);
    double cores = (cpu_busy_seconds() - busy_s) / (clock_seconds() - begin_s);
    if (busy_s < 0)
        return;
    env_add(out, "load", false, cores < busy_most ? ENV_OK : ENV_WARNING,
            "other programs use this machine, which may show in the times",
            "%.1f of %ld cores are busy", fmax(cores, 0), sysconf(_SC_NPROCESSORS_ONLN));
}

static void check_threads(struct env_list *out)
{
    char quota[64] = "";
    if (fp_cpu_quota() > 0)
        snprintf(quota, sizeof(quota), " under a control group's quota of %.3g cores",
                 fp_cpu_quota());
    bool known = fp_places_are_known();
    env_add(
        out, "threads", false, known ? ENV_OK : ENV_WARNING,
        "mount /sys: without it threads are bound to cores in the order of their numbers, and no "
        "quota of CPU time is seen",
        "%d%s%s", cpu_threads(), quota, known ? "" : " (/sys is not mounted)");
}

/* What makes times vary. */
static void noise(struct env_list *out)
{
    check_threads(out);
    check_governor(out);
    check_load(out);
}

static void check_sandbox(struct env_list *out)
{
    struct status problem = STATUS_INIT;
    bool wanted;
    if (sandbox_wanted(&wanted, &problem) != 0) {
        env_add(out, "sandbox", true, ENV_MISSING, "", "%s", problem.message);
        return;
    }
    unsigned kept_from = wanted ? sandbox_try() : 0;
    env_add(out, "sandbox", false, kept_from == SANDBOX_ALL ? ENV_OK : ENV_WARNING,
            "emitted code could reach the rest: see SECURITY.md", "keeps candidates from%s%s%s",
            (kept_from & SANDBOX_FILES) != 0 ? " files" : "",
            (kept_from & SANDBOX_CALLS) != 0 ? " processes network" : "",
            kept_from == 0 ? " nothing" : "");
}

static void checks(const struct toolchain *tc, const struct status *problem, struct env_list *out)
{
    struct cpu_info cpu;
    cpu_info_read(&cpu);
    if (tc != NULL) {
        bool openmp = strstr(tc->where.libraries, " openmp") != NULL;
        env_add(out, "compiler", true, ENV_OK, "", "%s (%s)", tc->where.compiler, tc->path);
        env_add(out, "libraries", true, openmp ? ENV_OK : ENV_WARNING,
                "an OpenBLAS built for OpenMP shares its threads with emitted code: "
                "apt install libopenblas-openmp-dev",
                "%s", tc->where.libraries);
    } else {
        bool lacks = strstr(problem->message, CPU_COMPILER_ADVICE) != NULL;
        env_add(out, "compiler", true, ENV_MISSING, lacks ? CPU_COMPILER_ADVICE : "", "%s",
                problem->message);
    }
    env_add(out, "CPU", false, ENV_OK, "", "%s, %s", cpu.model, cpu.extension);
    check_sandbox(out);
    noise(out);
}

const struct target_ops target_cpu = {
    .toolchain = cpu_compiler_find,
    .fingerprint = fingerprint,
    .checks = checks,
    .noise = noise,
};
