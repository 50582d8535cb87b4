/* Whether stored boosters may be used.  XGBoost trusts what it reads: an array that is too short or
 * a child that is out of range crashes it when it reads, or when it predicts.  So a child process,
 * which may die, reads the boosters first, and holds their trees against what XGBoost writes. */
#include "model/model_int.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A check takes 0.1 s of a core.  Damage may make XGBoost compute for ever: that ends after CPU_S
 * seconds of a core.  Where the child waits for ever, its alarm ends it after DEADLINE_S, which is
 * long because a busy machine may give a process little of its cores.  A suspended child gets no
 * alarm: the parent kills it after SUSPENDED_S. */
enum { CPU_S = 10, DEADLINE_S = 60, SUSPENDED_S = DEADLINE_S + 2, MEMORY_MAX = 1 << 30 };

/* ---- trees, as JSON -------------------------------------------------------------------------- */

static bool is_number(const json_t *object, const char *name, long expected)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *end;
    return text != NULL && strtol(text, &end, 10) == expected && end != text && *end == '\0';
}

static json_int_t at(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

/* A node has two children that come after it, or none; so there is no circle. */
static bool nodes_are_right(const json_t *tree, size_t count, int columns)
{
    const json_t *left = json_object_get(tree, "left_children");
    const json_t *right = json_object_get(tree, "right_children");
    const json_t *column = json_object_get(tree, "split_indices");
    const json_t *type = json_object_get(tree, "split_type");
    for (size_t i = 0; i < count; i++) {
        json_int_t least = (json_int_t)i, most = (json_int_t)count, l = at(left, i);
        json_int_t r = at(right, i), c = at(column, i);
        bool leaf = l == -1 && r == -1;
        if (!leaf && (l <= least || l >= most || r <= least || r >= most))
            return false;
        if (c < 0 || c >= columns || at(type, i) != 0)
            return false;
    }
    return true;
}

static bool is_tree(const json_t *tree, int columns)
{
    static const char *const arrays[] = {
        "left_children", "right_children", "parents",      "split_indices",    "split_type",
        "default_left",  "base_weights",   "loss_changes", "split_conditions", "sum_hessian"};
    size_t count = json_array_size(json_object_get(tree, "left_children"));
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
        if (json_array_size(json_object_get(tree, arrays[i])) != count)
            return false;
    return count > 0 && nodes_are_right(tree, count, columns) &&
           is_number(json_object_get(tree, "tree_param"), "num_nodes", (long)count);
}

/* All trees add to the one output. */
static bool trees_are_right(const json_t *model, int columns)
{
    const json_t *trees = json_object_get(model, "trees");
    const json_t *info = json_object_get(model, "tree_info");
    size_t count = json_array_size(trees);
    if (json_array_size(info) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (at(info, i) != 0 || !is_tree(json_array_get(trees, i), columns))
            return false;
    return true;
}

static bool text_is_right(const struct buf *text, int columns)
{
    json_t *root = json_loadb(text->ptr, text->len, 0, NULL);
    const json_t *learner = json_object_get(root, "learner");
    const json_t *param = json_object_get(learner, "learner_model_param");
    const json_t *trees = json_object_get(learner, "gradient_booster");
    const char *name = json_string_value(json_object_get(trees, "name"));
    bool right = is_number(param, "num_feature", columns) && is_number(param, "num_class", 0) &&
                 name != NULL && strcmp(name, "gbtree") == 0 &&
                 trees_are_right(json_object_get(trees, "model"), columns);
    json_decref(root);
    return right;
}

/* ---- the child ------------------------------------------------------------------------------- */

static bool can_predict(struct booster *b, int columns)
{
    enum { ROWS = 3 };
    static const float values[ROWS] = {0, 1, NAN};
    float out[ROWS];
    struct status ignored = STATUS_INIT;
    struct matrix x = {ROWS, columns, mem_alloc(ROWS * (size_t)columns, sizeof(*x.values))};
    for (int i = 0; i < ROWS * columns; i++)
        x.values[i] = values[i / columns];
    int result = booster_predict(b, x, out, &ignored);
    free(x.values);
    return result == 0;
}

static int try_one(const void *bytes, size_t len, int columns, struct status *st)
{
    struct booster *b;
    struct buf text;
    if (booster_load(bytes, len, columns, &b, st) != 0)
        return -1;
    buf_init(&text);
    bool right = booster_save(b, "json", &text, st) == 0 && text_is_right(&text, columns) &&
                 can_predict(b, columns);
    buf_release(&text);
    booster_free(b);
    return right ? 0
                 : status_set(st, STATUS_MODEL,
                              "the stored model has trees that xgboost never writes; train it "
                              "again");
}

static _Noreturn void become_child(const struct stored_booster two[2], int columns, int answer)
{
    struct status st = STATUS_INIT;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDERR_FILENO); /* what a library says as it dies */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    rlim_t most = (rlim_t)used.ru_maxrss * 1024 + MEMORY_MAX;
    setrlimit(RLIMIT_DATA, &(struct rlimit){most, most});
#endif
    /* The limit's signal is SIGXCPU, and SIGKILL where it is the highest limit, too. */
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_S, CPU_S + 1});
    alarm(DEADLINE_S);
    for (int i = 0; i < 2 && st.code == STATUS_OK; i++)
        try_one(two[i].bytes, two[i].len, columns, &st);
    ssize_t written = write(answer, &st, sizeof(st));
    _exit(written == (ssize_t)sizeof(st) ? 0 : 1);
}

/* Reads what the child says; false if it died before, or said nothing until a time. */
static bool read_answer(int from, double until, struct status *out)
{
    enum { TICK_MS = 100 };
    size_t got = 0;
    while (got < sizeof(*out) && clock_seconds() < until) {
        struct pollfd fd = {.fd = from, .events = POLLIN};
        if (poll(&fd, 1, TICK_MS) <= 0)
            continue;
        ssize_t n = read(from, (char *)out + got, sizeof(*out) - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return got == sizeof(*out);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* How a child ended: with what it said, or, unanswered, with a status of waitpid(). */
struct end {
    bool answered;
    struct status said;
    int wait_status;
};

static int run_child(const struct stored_booster two[2], int columns, struct end *end,
                     struct status *st)
{
    int ends[2];
    *end = (struct end){.said = STATUS_INIT};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
    child_keep_ends();
    pid_t pid = fork();
    if (pid == 0)
        become_child(two, columns, ends[1]);
    int reason = errno;
    close(ends[1]);
    const double until = clock_seconds() + SUSPENDED_S;
    end->answered = pid > 0 && read_answer(ends[0], until, &end->said);
    close(ends[0]);
    if (pid < 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot start a process: %s", strerror(reason));
    if (!end->answered && clock_seconds() >= until)
        kill(pid, SIGKILL);
    while (waitpid(pid, &end->wait_status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

/* The signals that a damaged model makes a process send itself, or the kernel send it.  Any other
 * one came from outside, or is the deadline of a machine that is too busy. */
static bool is_of_the_model(int signal_number)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGXCPU};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] == signal_number)
            return true;
    return false;
}

int boosters_check(const struct stored_booster two[2], int columns, struct status *st)
{
    enum { ATTEMPTS = 2 };
    struct end end;
    bool stopped = true;
    for (int i = 0; i < ATTEMPTS && stopped; i++) {
        if (run_child(two, columns, &end, st) != 0)
            return -1;
        stopped = !end.answered && WIFSIGNALED(end.wait_status) &&
                  !is_of_the_model(WTERMSIG(end.wait_status));
    }
    if (stopped)
        return status_set(st, STATUS_ENVIRONMENT,
                          "the process that checks the stored model was stopped %d times, the last "
                          "time by SIG%s: this machine may be short of memory or too busy; try "
                          "again",
                          ATTEMPTS, sigabbrev_np(WTERMSIG(end.wait_status)));
    if (!end.answered)
        return status_set(st, STATUS_MODEL,
                          "xgboost crashes on the stored model, or computes for ever: it is "
                          "damaged; train it again");
    if (end.said.code != STATUS_OK)
        return status_set(st, end.said.code, "%s", end.said.message);
    return 0;
}
