/* What an exported library refuses: models, calls, children of a process that used it.  export.sh
 * builds this with the folder, as a plugin too.  The library has one plan, (2,100). */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

int use(void);

static struct encoder *handle;
static struct encoder_call call; /* a good one */
static size_t bytes;             /* of x, and of y */

static void begin(void)
{
    draw_model(1);
    CHECK(encoder_create(&model, &handle) == ENCODER_OK);
    bytes = (size_t)(BATCH * SEQ_LEN * hidden()) * sizeof(float);
    call = call_new(BATCH, SEQ_LEN);
}

static void end(void)
{
    encoder_destroy(handle);
    call_delete(&call);
    free_model();
}

/* ---- models ---------------------------------------------------------------------------------- */

static void refuse_model(struct encoder_model m, const char *says)
{
    struct encoder *e = (struct encoder *)&m;
    CHECK(encoder_create(&m, &e) == ENCODER_BAD_ARGUMENT && e == NULL);
    CHECK(said(says));
}

static void test_models(void)
{
    /* as a float some are 0 or infinite */
    static const double bad_eps[] = {0, -1e-5, 1e-300, 1e300, INFINITY, NAN};
    struct encoder_model m = model;
    m.heads++;
    refuse_model(m, "the library runs");
    m = model;
    m.dtype = ENCODER_BF16;
    refuse_model(m, "the weights are bf16; the library takes fp32");
    m.dtype = (enum encoder_dtype)4;
    refuse_model(m, "4 is no type");
    m.dtype = (enum encoder_dtype) - 1;
    refuse_model(m, "-1 is no type");
    m = model;
    m.layers = 0;
    refuse_model(m, "0 layers");
    m = model;
    for (size_t i = 0; i < sizeof(bad_eps) / sizeof(bad_eps[0]); i++) {
        m.eps = bad_eps[i];
        refuse_model(m, "the model has eps");
    }
    m = model;
    m.on_device = 1;
    if (on_cpu())
        refuse_model(m, "on_device is 1");
    weights[1].w2 = NULL;
    refuse_model(model, "layer 1: w2 is null");
    weights[1].w2 = drawn[1][8];
    CHECK(encoder_create(NULL, NULL) == ENCODER_BAD_ARGUMENT);
    encoder_destroy(NULL);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void refuse_call(const struct encoder *e, struct encoder_call c, int status,
                        const char *says)
{
    CHECK(encoder_run(e, &c) == status && said(says));
}

static void test_calls(void)
{
    static const int zero[] = {100, 0}, more[] = {1, 101};
    struct encoder_call c = call;
    refuse_call(NULL, c, ENCODER_BAD_ARGUMENT, "the handle is null");
    CHECK(encoder_run(handle, NULL) == ENCODER_BAD_ARGUMENT && said("the call is null"));
    c.x = NULL;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "the input x is null");
    c = call;
    c.workspace_bytes--;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "the workspace has");
    c = call;
    c.x = (const float *)c.x + 1;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "not aligned");
    c = call;
    c.batch = 0;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "expected positive sizes");
    c = call;
    c.seq_len++;
    refuse_call(handle, c, ENCODER_NO_PLAN, "no plan is as large");
    c = call;
    c.lengths = zero;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "length 1 is 0");
    c.lengths = more;
    refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "length 1 is 101");
    c = call;
    c.stream = &c;
    if (on_cpu())
        refuse_call(handle, c, ENCODER_BAD_ARGUMENT, "a stream is given to a library for CPUs");
}

/* The first bytes of two buffers are the same, or the last of one are the first of the other. */
static void test_overlaps(void)
{
    static const int one[BATCH] = {1, 1};
    enum { ALIGNED = 16 };
    char *x = (char *)call.x, *x_end = x + bytes - ALIGNED, *y = call.y,
         *y_end = y + bytes - ALIGNED;
    char *w = call.workspace, *w_end = w + call.workspace_bytes - ALIGNED;
    const struct {
        char *x, *y, *workspace, *lengths;
        const char *one, *other;
    } rows[] = {
        {x, x, w, NULL, "the output y (", "the input x ("},
        {x, x_end, w, NULL, "the output y (", "the input x ("},
        {y_end, y, w, NULL, "the output y (", "the input x ("},
        {x, w, w, NULL, "the output y (", "the workspace ("},
        {x, w_end, w, NULL, "the output y (", "the workspace ("},
        {x, y, y_end, NULL, "the output y (", "the workspace ("},
        {w, y, w, NULL, "the workspace (", "the input x ("},
        {w_end, y, w, NULL, "the workspace (", "the input x ("},
        {x, y, w, y_end, "the output y (", "lengths ("},
        {x, y, w, w_end, "the workspace (", "lengths ("},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct encoder_call c = call;
        c.x = rows[i].x;
        c.y = rows[i].y;
        c.workspace = rows[i].workspace;
        if (rows[i].lengths != NULL)
            device_write(rows[i].lengths, one, sizeof(one));
        c.lengths = on_cpu() ? (const int *)rows[i].lengths : NULL;
        c.device_lengths = on_cpu() ? NULL : (const int *)rows[i].lengths;
        refuse_call(handle, c, ENCODER_BAD_ARGUMENT, rows[i].one);
        CHECK(said(rows[i].other));
    }
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A child runs the parent's handle, creates one and runs that, each with this status. */
static void fork_child(int creates, int runs)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct encoder *own;
        failures = 0;
        alarm(60); /* it may wait for threads that are not there */
        CHECK(encoder_run(handle, &call) == runs);
        CHECK(runs == ENCODER_OK || said("start the process by exec"));
        CHECK(encoder_create(&model, &own) == creates);
        CHECK(own == NULL || encoder_run(own, &call) == runs);
        encoder_destroy(own);
        encoder_destroy(handle);
        fflush(stdout);
        _exit(failures);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* In a plugin, which is then unloaded. */
int use(void)
{
    begin();
    CHECK(encoder_run(handle, &call) == ENCODER_OK);
    end();
    return failures;
}

int main(void)
{
    begin();
    const int first = on_cpu() ? ENCODER_OK : ENCODER_FORKED; /* the handle is CUDA's */
    fork_child(first, first);
    test_models();
    test_calls();
    test_overlaps();
    CHECK(encoder_run(handle, &call) == ENCODER_OK);
    fork_child(first, ENCODER_FORKED);
    CHECK(encoder_run(handle, &call) == ENCODER_OK);
    end();
    return report();
}
