/* Which compiler the CUDA target takes, and what it remembers of a GPU.  The worker is a script
 * that stands for NVRTC and asks the real one for the rest. */
#include "bench/bench_int.h"
#include "tests/bench/gpu_fixture.h"

static struct cache cache;
static struct toolchain tc;

/* Looks for a compiler as the CUDA target does. */
static int look(const char *compiler, const volatile sig_atomic_t *stop)
{
    const struct toolchain_request request = {
        .compiler = compiler, .worker = test_path("worker"), .stop = stop};
    st = STATUS_INIT;
    return target_cuda.toolchain(&request, &cache, &tc, &st);
}

static void teardown(void)
{
    toolchain_release(&tc);
    cache_release(&cache);
    test_dir_teardown();
}

static void setup(void)
{
    char path[512], worker[2048];
    gpu_setup();
    OK(file_make_dirs(test_path("cuda home/bin"), &st));
    setenv("CUDA_HOME", test_path("cuda home"), 1);
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", test_dir);
    setenv("PATH", path, 1);
    ck_assert_int_eq(unlink(test_path("nvcc")), 0);
    snprintf(worker, sizeof(worker),
             "#!/bin/sh\n"
             "dir='%s'\n"
             "[ -f \"$dir/stuck$1\" ] && { kill -USR1 %ld; exec sleep 54321; }\n"
             "[ ! -f \"$dir/killed$1\" ] || kill -KILL $$\n"
             "case $1 in\n"
             "--nvrtc-version)\n"
             "    [ -f \"$dir/nvrtc\" ] || exit 1\n"
             "    read -r major state <\"$dir/nvrtc\"\n"
             "    echo; echo \"" WORKER_ANSWER
             "{\\\"library\\\": \\\"$CUDA_HOME/nvrtc\\\", \\\"major\\\": $major, "
             "\\\"minor\\\": 0}\" ;;\n"
             "--nvrtc)\n"
             "    ulimit -v >\"$dir/bound\"\n"
             "    [ \"$2\" = \"$CUDA_HOME/nvrtc\" ] || { echo \"error: no '$2'\"; exit 1; }\n"
             "    read -r major state <\"$dir/nvrtc\"\n"
             "    [ \"$state\" = works ] || { echo 'error: builtins are missing'; exit 1; }\n"
             "    while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
             "    echo code >\"$out\" ;;\n"
             "*) exec '%s' \"$@\" ;;\n"
             "esac\n",
             test_dir, (long)getpid(), FUSEPLAN_WORKER);
    write_script(test_path("worker"), worker);
    OK(cache_open(test_path("cache"), &cache, &st));
}

/* ---- which compiler -------------------------------------------------------------------------- */

/* The driver supports CUDA 13.0, the GPU is an sm_80. */
static const struct {
    const char *nvrtc, *nvcc; /* release and state; release; null: missing */
    const char *option;
    const char *taken; /* null: refused */
    const char *says;  /* the refusal, or why the faster one was passed over */
} machines[] = {
    {"13 works", "13.0", NULL, "nvrtc 13.0", ""},
    {"13 works", "13.0", "auto", "nvrtc 13.0", ""},
    {"13 works", "12.8", "nvcc", "nvcc 12.8", ""},
    {NULL, "12.8", "auto", "nvcc 12.8", ""},
    {"12 works", NULL, "auto", "nvrtc 12.0", ""},
    {"14 works", "13.0", "auto", "nvcc 13.0", "supports CUDA 13.0 and the compiler is nvrtc 14.0"},
    {"13 broken", "13.0", "auto", "nvcc 13.0", "builtins are missing"},
    {NULL, NULL, "auto", NULL, "no CUDA compiler found, neither NVRTC nor nvcc; install"},
    {"13 works", NULL, "nvcc", NULL, "no nvcc found on PATH, nor '"},
    {NULL, "13.0", "nvrtc", NULL, "no NVRTC library (libnvrtc.so) found; install"},
    {"13 works", "13.0", "gcc", NULL, "expected auto, nvcc or nvrtc"},
    {"14 works", NULL, "auto", NULL,
     "supports CUDA 13.0 and the compiler is nvrtc 14.0; install a driver for CUDA 14.0 or later, "
     "or a toolkit of release 13"},
    {"13 broken", NULL, "auto", NULL, "nvrtc 13.0 builds no code for Fake GPU (sm_80"},
    {NULL, "10.2", "auto", NULL,
     "Fake GPU (sm_80) needs a compiler of CUDA 11.0 or later and this one is nvcc 10.2"},
};

/* nvcc on PATH comes first, then what a variable names, also with a blank in it. */
static const struct {
    const char *home, *path; /* CUDA_HOME, CUDA_PATH; null: unset */
    bool on_path;
    const char *found, *why; /* below test_dir; null: none */
} toolkits[] = {
    {"cuda home", "other", true, "nvcc", "on PATH"},
    {"cuda home", "other", false, "cuda home/bin/nvcc", "CUDA_HOME"},
    {NULL, "cuda home", false, "cuda home/bin/nvcc", "CUDA_PATH"},
    {"", "cuda home", false, "cuda home/bin/nvcc", "CUDA_PATH"},
    {"other", "cuda home", false, NULL, "other/bin/nvcc' (CUDA_HOME); install"},
};

static void set_dir(const char *variable, const char *dir)
{
    if (dir == NULL)
        unsetenv(variable);
    else
        setenv(variable, dir[0] != '\0' ? test_path(dir) : "", 1);
}

TEST_LOOP(nvcc_is_found, 0, ARRAY_LEN(toolkits))
{
    SCOPED_BUF path = BUF_INIT;
    const char *why;
    write_nvcc("13.0");
    if (!toolkits[_i].on_path)
        ck_assert_int_eq(rename(test_path("nvcc"), test_path("cuda home/bin/nvcc")), 0);
    set_dir("CUDA_HOME", toolkits[_i].home);
    set_dir("CUDA_PATH", toolkits[_i].path);
    if (toolkits[_i].found != NULL) {
        OK(nvcc_find(&path, &why, &st));
        ck_assert_str_eq(path.ptr, test_path(toolkits[_i].found));
        ck_assert_str_eq(why, toolkits[_i].why);
    } else {
        FAILS(nvcc_find(&path, &why, &st), STATUS_NOT_FOUND, toolkits[_i].why);
    }
}

TEST_LOOP(compiler_that_serves_is_taken, 0, ARRAY_LEN(machines))
{
    if (machines[_i].nvrtc != NULL)
        write_text(test_path("nvrtc"), machines[_i].nvrtc);
    if (machines[_i].nvcc != NULL) {
        write_nvcc(machines[_i].nvcc);
        ck_assert_int_eq(rename(test_path("nvcc"), test_path("cuda home/bin/nvcc")), 0);
    }
    int result = look(machines[_i].option, NULL);
    if (machines[_i].taken == NULL) {
        ck_assert_int_eq(result, -1);
        ck_assert_ptr_nonnull(strstr(st.message, machines[_i].says));
        ck_assert_ptr_null(tc.path);
        return;
    }
    ck_assert_msg(result == 0, "%s", st.message);
    ck_assert_str_eq(tc.where.compiler, machines[_i].taken);
    ck_assert_str_eq(tc.flags.items[tc.flags.count - 1], "-arch=sm_80");
    ck_assert_str_eq(tc.where.device, "Fake GPU");
    ck_assert_ptr_nonnull(strstr(tc.passed_over.message, machines[_i].says));
    ck_assert_int_eq(tc.passed_over.code == STATUS_OK, machines[_i].says[0] == '\0');
}

/* A greedy compiler fails alone.  NVRTC runs in the worker's program, which AddressSanitizer would
 * not let have a bound. */
TEST_LOOP(compilers_have_a_bound, 0, 2)
{
    write_text(test_path("nvrtc"), "13 works");
    write_nvcc("13.0");
    OK(look(_i == 0 ? "nvcc" : "nvrtc", NULL));
#ifdef __SANITIZE_ADDRESS__
    ck_assert_str_eq(text_of("bound"), _i == 0 ? "8388608\n" : "unlimited\n");
#else
    ck_assert_str_eq(text_of("bound"), "8388608\n"); /* KiB */
#endif
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static volatile sig_atomic_t stop;

static void set_stop(int signal)
{
    stop = 1;
}

/* Each is asked by the worker's program, and one of them hangs, as a driver may. */
static const char *const questions[] = {"--cuda-probe", "--nvrtc-version", "--nvrtc",
                                        "--cublas-version"};

/* Tells the script in the worker's place what becomes of a question. */
static void plant(const char *fate, const char *question)
{
    char name[64];
    write_text(test_path("nvrtc"), "13 works");
    snprintf(name, sizeof(name), "%s%s", fate, question);
    write_text(test_path(name), "");
}

TEST_LOOP(interrupt_ends_the_look_at_the_tools, 0, ARRAY_LEN(questions))
{
    plant("stuck", questions[_i]);
    signal(SIGUSR1, set_stop);
    double start = clock_seconds();
    FAILS(look(NULL, &stop), STATUS_INTERRUPTED, "");
    ck_assert_double_lt(clock_seconds() - start, 20);
}

/* What is killed says nothing of the machine's libraries. */
TEST_LOOP(killed_look_is_no_answer, 0, 2)
{
    plant("killed", _i == 0 ? "--nvrtc-version" : "--cublas-version");
    FAILS(look(NULL, NULL), STATUS_ENVIRONMENT, "asking for ");
}

/* ---- what is remembered of a GPU ------------------------------------------------------------- */

static void write_proc(const char *driver, const char *device)
{
    char path[512];
    OK(file_remove_all(test_path("proc"), &st));
    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s", test_dir, device);
    OK(file_make_dirs(path, &st));
    OK(file_make_dirs(test_path("proc/sys/kernel/random"), &st));
    write_text(test_path("proc/sys/kernel/random/boot_id"), "e04b20cd\n");
    write_text(test_path("proc/driver/nvidia/version"), driver);
}

/* Whether the GPU is known without a driver: what the driver would say now is that there
 * is none. */
static bool is_remembered(int device)
{
    struct gpu gpu;
    setenv("FAKE_GPU", "none", 1);
    const struct toolchain_request request = {.device = device, .worker = FUSEPLAN_WORKER};
    int result = gpu_recall(&request, &cache, test_path("proc"), &gpu, &st);
    unsetenv("FAKE_GPU");
    if (result != 0)
        ck_assert_ptr_nonnull(strstr(st.message, "sees no GPU"));
    else
        ck_assert_str_eq(gpu.where.device, "Fake GPU");
    return result == 0;
}

static void ask(void)
{
    struct gpu gpu;
    const struct toolchain_request request = {.worker = FUSEPLAN_WORKER};
    OK(gpu_recall(&request, &cache, test_path("proc"), &gpu, &st));
    ck_assert_int_eq(gpu.arch, 80);
    ck_assert_int_eq(gpu.where.units, 4);
}

/* Files that are written, or directories that are made where `text` is null; and variables.  Each
 * is another boot, driver, GPU, job or container. */
static const struct {
    const char *file, *text, *variable;
} changes[] = {
    {NULL, "1", "CUDA_VISIBLE_DEVICES"},
    {NULL, "", "CUDA_VISIBLE_DEVICES"},
    {"proc/sys/kernel/random/boot_id", "0bfb8f74\n", NULL},
    {"proc/driver/nvidia/version", "590.2", NULL},
    {"proc/driver/nvidia/gpus/0000:02:00.0", NULL, NULL},
    {"proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0", NULL, NULL},
    {"proc/self/cgroup", "0::/slurm/job_7/step_0\n", NULL},
    {"dev/nvidia1", "", NULL},
};

TEST_LOOP(gpu_is_asked_once_for_a_driver_and_a_boot, 0, ARRAY_LEN(changes))
{
    write_proc("580.1", "0000:01:00.0");
    ck_assert(!is_remembered(0)); /* and that there is none is not kept */
    ask();
    ck_assert(is_remembered(0));
    ck_assert(!is_remembered(1));
    OK(file_make_dirs(test_path("proc/self"), &st));
    OK(file_make_dirs(test_path("dev"), &st));
    ck_assert(is_remembered(0));
    if (changes[_i].variable != NULL)
        setenv(changes[_i].variable, changes[_i].text, 1);
    else if (changes[_i].text != NULL)
        write_text(test_path(changes[_i].file), changes[_i].text);
    else
        OK(file_make_dirs(test_path(changes[_i].file), &st));
    ck_assert(!is_remembered(0));
    ask();
    ck_assert(is_remembered(0) || changes[_i].variable != NULL);
}

/* As in a container that shows less of its host. */
TEST(gpu_is_asked_where_the_system_says_too_little)
{
    write_proc("580.1", "0000:01:00.0");
    ck_assert_int_eq(unlink(test_path("proc/driver/nvidia/version")), 0);
    ask();
    ck_assert(!is_remembered(0));
}

SUITE("cuda tools", setup, teardown)
