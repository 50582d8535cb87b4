/* Builds and verifies segments on a GPU: each by every implementation that serves it.
 *
 * Prints a line for each failure and one that sums up; exits 1 where anything failed. */
#include "request.h"

static const char usage[] =
    "usage: cuda_segments " REQUEST_USAGE
    "  -s SET   all segments (the default), stages or I-J,I-J,...\n"
    "  -k N     schedules with at most N knobs turned (all of -s I-J, else 0)\n"
    "  -i NAME  only by this implementation, or by those of several -i\n"
    "  -p I/N   part I of N of the set, I from 0\n"
    "  -b       build only\n"
    "  -m       time each kernel, too\n"
    "  -P       with lengths times are of packed tokens\n";

static const char *set = "all", *implementations[IMPLS_MAX];
static int implementation_count, part, parts = 1, turned = -1;
static bool build_only, measures, packed;

static void read_part(const char *text)
{
    struct status st = STATUS_INIT;
    if (sscanf(text, "%d/%d", &part, &parts) == 2 && part >= 0 && part < parts)
        return;
    status_set(&st, STATUS_USAGE, "'%s' is no part I/N, I from 0 to N-1", text);
    give_up(&st);
}

static void add_implementation(const char *name)
{
    struct status st = STATUS_INIT;
    if (implementation_count < IMPLS_MAX) {
        implementations[implementation_count++] = name;
        return;
    }
    status_set(&st, STATUS_USAGE, "more than %d times -i", IMPLS_MAX);
    give_up(&st);
}

static void option(int letter, const char *value)
{
    if (letter == 'b')
        build_only = true;
    else if (letter == 'm')
        measures = true;
    else if (letter == 'P')
        packed = true;
    else if (letter == 's')
        set = value;
    else if (letter == 'k')
        turned = read_number("-k", value);
    else if (letter == 'i')
        add_implementation(value);
    else
        read_part(value);
}

static bool selected(const struct impl *impl)
{
    for (int i = 0; i < implementation_count; i++)
        if (strcmp(impl->name, implementations[i]) == 0)
            return true;
    return implementation_count == 0;
}

/* An implementation that was asked for and serves nothing would be missed by nobody. */
static void expect_all(const struct choice *choices, int count)
{
    struct status st = STATUS_INIT;
    for (int i = 0; i < implementation_count; i++) {
        int n = 0;
        while (n < count && strcmp(choices[n].impl->name, implementations[i]) != 0)
            n++;
        if (n < count)
            continue;
        status_set(&st, STATUS_USAGE, "'%s' serves nothing of '%s'", implementations[i], set);
        give_up(&st);
    }
}

static int select_choices(const struct build_target *t, struct choice *out)
{
    struct status st = STATUS_INIT;
    const bool listed = strchr(set, '-') != NULL;
    int n = list_choices(t, set, turned >= 0 ? turned : listed ? KNOB_MAX : 0, out);
    int count = 0, kept = 0;
    for (int i = 0; i < n; i++)
        if (selected(out[i].impl))
            out[kept++] = out[i];
    n = kept;
    expect_all(out, n);
    for (int i = part; i < n; i += parts)
        out[count++] = out[i];
    if (count == 0) {
        status_set(&st, STATUS_USAGE, "part %d of %d of '%s' holds nothing", part, parts, set);
        give_up(&st);
    }
    return count;
}

static void say(const char *what, const char *name, const struct choice *c,
                const struct status *why)
{
    SCOPED_BUF text = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &text);
    printf("%s: %s: %d-%d %s %s: %s\n", what, name, c->segment.first, c->segment.last,
           c->impl->name, text.ptr, why->message);
}

/* Workload, segment, implementation, schedule, microseconds of one layer and their interval. */
static void print_time(const char *name, const struct choice *c, const struct trial *t)
{
    SCOPED_BUF text = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &text);
    printf("time,%s,%d-%d,%s,%s,%.2f,%.2f,%.2f\n", name, c->segment.first, c->segment.last,
           c->impl->name, text.ptr, t->ms.median * 1e3, t->ms.low * 1e3, t->ms.high * 1e3);
}

struct tally {
    int failed;
    int refused;    /* the device or the library has no such thing: no fault, and no time either */
    double worst;   /* error of those that are right */
    double build_s; /* of all */
    double first_s; /* of the first one: the worker's start and the oracle */
    double rest_s;
};

static void build(struct bench *b, const char *name, const struct choice *choices, int count,
                  struct status *built, struct tally *out)
{
    struct status st = STATUS_INIT;
    double start = clock_seconds();
    if (bench_build(b, choices, count, built, &st) != 0)
        give_up(&st);
    out->build_s = seconds_since(start);
    for (int i = 0; i < count; i++)
        if (built[i].code != STATUS_OK) {
            say("FAILED", name, &choices[i], &built[i]);
            out->failed++;
        }
}

/* Those that were built. */
static void verify(struct bench *b, const char *name, const struct choice *choices, int count,
                   const struct status *built, struct tally *out)
{
    const struct sampling how = measures ? sampling_search : (struct sampling){.max_samples = 0};
    double start = clock_seconds();
    for (int i = 0; i < count; i++) {
        struct status st = STATUS_INIT;
        struct trial t;
        if (built[i].code != STATUS_OK)
            continue;
        if (bench_segment(b, &choices[i], packed, &how, &t, &st) != 0)
            give_up(&st);
        if (t.reason.code == STATUS_UNFIT) {
            say("refused", name, &choices[i], &t.reason);
            out->refused++;
        } else if (t.status != TRIAL_OK) {
            say("FAILED", name, &choices[i], &t.reason);
            out->failed++;
        } else if (t.error > out->worst) {
            out->worst = t.error;
        }
        if (measures && t.status == TRIAL_OK)
            print_time(name, &choices[i], &t);
        trial_release(&t);
        if (out->first_s == 0)
            out->first_s = seconds_since(start);
    }
    out->rest_s = seconds_since(start) - out->first_s;
}

int main(int argc, char **argv)
{
    static struct choice choices[CHOICES_MAX];
    static struct status built[CHOICES_MAX];
    struct status st = STATUS_INIT;
    struct tally tally = {.failed = 0};
    SCOPED_BY(request_release) struct request r;
    SCOPED_BY(bench_close_at) struct bench *b;
    request_read(&r, argc, argv, usage, "s:k:i:p:bmP", option);
    if (bench_open(&r.options, &r.workload, &b, &st) != 0)
        give_up(&st);
    const struct build_target target = request_target(&r, b);
    int count = select_choices(&target, choices);
    build(b, r.name, choices, count, built, &tally);
    if (build_only) {
        printf("%s: %d kernels built by %s, %d failed, in %.1f s\n", r.name, count,
               bench_fingerprint(b)->compiler, tally.failed, tally.build_s);
    } else {
        verify(b, r.name, choices, count, built, &tally);
        if (tally.refused == count) {
            printf("FAILED: %s: all %d kernels were refused\n", r.name, count);
            tally.failed++;
        }
        printf("%s: %d kernels, %d failed, %d refused, largest error %.2g of %g allowed; built in "
               "%.1f s, the "
               "oracle and the first one %.1f s, the others %.1f s\n",
               r.name, count, tally.failed, tally.refused, tally.worst,
               dtypes[r.workload.dtype].tolerance, tally.build_s, tally.first_s, tally.rest_s);
    }
    return tally.failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
