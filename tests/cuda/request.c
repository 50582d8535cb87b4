#include "request.h"

#include <getopt.h>

void give_up(const struct status *st)
{
    fprintf(stderr, "FAILED: %s\n", st->message);
    exit(EXIT_FAILURE);
}

int read_number(const char *what, const char *text)
{
    struct status st = STATUS_INIT;
    int64_t value;
    if (number_parse(what, text, 0, INT32_MAX, &value, &st) != 0)
        give_up(&st);
    return (int)value;
}

double seconds_since(double start)
{
    return clock_seconds() - start;
}

/* ---- the workload ---------------------------------------------------------------------------- */

enum { ROPE_THETA = 10000 };

/* Another chain than BERT's, by its name. */
static void set_chain(struct workload *w, const char *name)
{
    struct status st = STATUS_INIT;
    w->chain = chain_find(name);
    if (w->chain == NULL) {
        status_set(&st, STATUS_USAGE, "there is no chain '%s'", name);
        give_up(&st);
    }
    w->rope_theta = chain_functions(w->chain).rope ? ROPE_THETA : 0;
}

/* A (S,S) mask of blocks that are empty, full, or keep each element with probability 0.3; every
 * eleventh row keeps nothing. */
static void draw_mask(int seq_len, struct buf *npy)
{
    enum { EMPTY, FULL, KINDS = 4, EMPTY_ROW = 3, EMPTY_EVERY = 11 };
    const int64_t shape[] = {seq_len, seq_len};
    struct rng rng = {.state = 1};
    SCOPED uint8_t *keep = mem_alloc((size_t)seq_len * (size_t)seq_len, 1);
    for (int i = 0; i < seq_len; i++)
        for (int j = 0; j < seq_len; j++) {
            uint64_t block = (uint64_t)(i / MASK_BLOCK) * SEQ_LEN_MAX + (uint64_t)(j / MASK_BLOCK);
            uint64_t kind = splitmix64(block) % KINDS;
            bool kept = kind == FULL || (kind != EMPTY && rng_unit(&rng) < 0.3);
            keep[(size_t)i * (size_t)seq_len + (size_t)j] = kept && i % EMPTY_EVERY != EMPTY_ROW;
        }
    npy_write(NPY_BOOL, 2, shape, keep, npy);
}

/* Makes every second layer local; two at least. */
static void set_local(struct workload *w, const char *mask)
{
    struct status st = STATUS_INIT;
    w->layers = w->layers < 2 ? 2 : w->layers;
    if (workload_add_local(w, mask, ROPE_THETA / 16.0, 2, &st) != 0)
        give_up(&st);
}

static void set_precision(struct request *r, const char *text)
{
    struct status st = STATUS_INIT;
    if (precision_parse(text, &r->precision, &st) != 0)
        give_up(&st);
}

struct build_target request_target(const struct request *r, const struct bench *b)
{
    struct build_target t = *bench_target(b);
    t.precision = r->precision;
    return t;
}

static void build_workload(struct workload *w, const char *mask, int average)
{
    struct status st = STATUS_INIT;
    SCOPED_BUF npy = BUF_INIT;
    bool random = strcmp(mask, "random") == 0;
    if (w->dtype == DTYPE_COUNT)
        status_set(&st, STATUS_USAGE, "no such type");
    else if (mask_parse(random ? "file:random.npy" : mask, &w->mask_spec, &st) == 0 &&
             (average == 0 || workload_draw_lengths(w, average, 1, &st) == 0) &&
             workload_check(w, &st) == 0) {
        bool file = strncmp(mask, "file:", strlen("file:")) == 0;
        if (random)
            draw_mask(w->seq_len, &npy);
        if (!file || file_read(mask + strlen("file:"), 0, &npy, &st) == 0)
            workload_build_mask(w, random || file ? &npy : NULL, &st);
    }
    if (st.code != STATUS_OK)
        give_up(&st);
}

static void name_request(struct request *r, const char *mask)
{
    const struct workload *w = &r->workload;
    const struct {
        char letter;
        int size, usual;
    } sizes[] = {{'H', w->heads, 12},
                 {'W', w->head_size, 64},
                 {'D', w->hidden, 0},
                 {'F', w->ffn, 4 * workload_hidden(w)}};
    SCOPED_BUF name = BUF_INIT;
    buf_addf(&name, "%s (%d,%d) %s", dtypes[w->dtype].name, w->batch, w->seq_len, mask);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (sizes[i].size != sizes[i].usual)
            buf_addf(&name, " %c=%d", sizes[i].letter, sizes[i].size);
    if (w->lengths != NULL)
        buf_adds(&name, " with lengths");
    if (r->precision != 0) {
        buf_adds(&name, " e4m3=");
        precision_text(r->precision, "", &name);
    }
    if (w->chain != &chain_bert)
        buf_addf(&name, " %s", w->chain->name);
    if (w->local != NULL) {
        buf_adds(&name, " local=");
        mask_text(&w->local->mask_spec, &name);
    }
    snprintf(r->name, sizeof(r->name), "%s", name.ptr);
}

static _Noreturn void end_with_usage(const char *usage)
{
    fputs(usage, stderr);
    exit(2);
}

void request_read(struct request *r, int argc, char **argv, const char *usage, const char *more,
                  void (*option)(int letter, const char *value))
{
    struct workload *w = &r->workload;
    struct status st = STATUS_INIT;
    char letters[64];
    const char *local = NULL;
    int letter, average = 0, deadline_s = 0;
    *r = (struct request){.options = {.target = {.kind = TARGET_CUDA}, .afresh = true}};
    workload_init(w);
    w->layers = 1;
    const struct {
        char letter;
        int *number;
    } numbers[] = {{'a', &average}, {'H', &w->heads},  {'W', &w->head_size}, {'D', &w->hidden},
                   {'F', &w->ffn},  {'L', &w->layers}, {'d', &deadline_s}};
    snprintf(letters, sizeof(letters), "a:c:l:e:H:W:D:F:L:w:t:C:d:%s", more);
    while ((letter = getopt(argc, argv, letters)) != -1) {
        size_t n = 0;
        while (n < ARRAY_LEN(numbers) && numbers[n].letter != letter)
            n++;
        if (letter == '?')
            end_with_usage(usage);
        else if (n < ARRAY_LEN(numbers))
            *numbers[n].number = read_number((const char[]){'-', (char)letter, '\0'}, optarg);
        else if (letter == 'c')
            set_chain(w, optarg);
        else if (letter == 'l')
            local = optarg;
        else if (letter == 'e')
            set_precision(r, optarg);
        else if (letter == 'w')
            r->options.weights = optarg;
        else if (letter == 'C')
            r->options.compiler = optarg;
        else if (letter != 't')
            option(letter, optarg);
        else if (target_parse(optarg, &r->options.target, &st) != 0)
            give_up(&st);
    }
    r->options.run_deadline_s = deadline_s;
    if (argc - optind != 4)
        end_with_usage(usage);
    w->dtype = dtype_from_name(argv[optind]);
    w->batch = read_number("batch", argv[optind + 1]);
    w->seq_len = read_number("seq_len", argv[optind + 2]);
    if (local != NULL)
        set_local(w, local);
    build_workload(w, argv[optind + 3], average);
    name_request(r, argv[optind + 3]);
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines of processes side by side stay whole */
}

void request_release(struct request *r)
{
    workload_release(&r->workload);
}

/* ---- choices --------------------------------------------------------------------------------- */

static int knobs_turned(const struct choice *c, const struct choice *from)
{
    int turned = 0;
    for (int k = 0; k < c->impl->knob_count; k++)
        turned += c->schedule.pick[k] != from->schedule.pick[k];
    return turned;
}

/* That with the most knobs at their first value, of a choice's implementation. */
static const struct choice *plainest(const struct choice *all, int n, const struct impl *impl)
{
    const struct choice first = {.impl = impl}, *best = NULL;
    for (int i = 0; i < n; i++)
        if (all[i].impl == impl &&
            (best == NULL || knobs_turned(&all[i], &first) < knobs_turned(best, &first)))
            best = &all[i];
    return best;
}

/* Those of a segment's choices that differ in at most `turned` knobs from the plainest one. */
static int list_turned(const struct build_target *t, struct segment s, bool handwritten, int turned,
                       int max, struct choice *out)
{
    static struct choice all[CHOICES_MAX];
    int n = choices_for(t, s, handwritten, CHOICES_MAX, all), count = 0;
    for (int i = 0; i < n && count < max; i++)
        if (knobs_turned(&all[i], plainest(all, n, all[i].impl)) <= turned)
            out[count++] = all[i];
    return count;
}

int list_segment(const struct build_target *t, struct segment s, bool handwritten, int max,
                 struct choice *out)
{
    return list_turned(t, s, handwritten, 0, max, out);
}

/* A segment's choices, and where the hand-written operator serves it that one's too. */
static int list_both(const struct build_target *t, struct segment s, int turned, int max,
                     struct choice *out)
{
    int count = list_turned(t, s, false, turned, max, out);
    if (s.first == 2 && s.last == 6)
        count += list_turned(t, s, true, turned, max - count, out + count);
    return count;
}

/* A segment of several stages is generated from the same functions as segments of one are. */
static bool is_stage(const struct choice *c)
{
    enum stage_kind kinds[OP_COUNT];
    const struct segment s = c->segment;
    return strcmp(c->impl->name, "generated") != 0 || (s.first == 0 && s.last == OP_COUNT - 1) ||
           segment_stages(c->impl->target, c->chain, s, kinds) == 1;
}

static int list_all(const struct build_target *t, bool stages, int turned, struct choice *out)
{
    int count = 0;
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        int n = list_both(t, segment_at(i), turned, CHOICES_MAX - count, out + count),
            first = count;
        for (int k = 0; k < n; k++)
            if (!stages || is_stage(&out[first + k]))
                out[count++] = out[first + k];
    }
    return count;
}

int list_choices(const struct build_target *t, const char *set, int turned, struct choice *out)
{
    int first, last, count = 0;
    if (strcmp(set, "all") == 0 || strcmp(set, "stages") == 0)
        return list_all(t, strcmp(set, "stages") == 0, turned, out);
    for (const char *at = set;
         sscanf(at, "%d-%d", &first, &last) == 2 && 0 <= first && first <= last && last < OP_COUNT;
         at += strcspn(at, ",") + 1) {
        count += list_both(t, (struct segment){(int8_t)first, (int8_t)last}, turned,
                           CHOICES_MAX - count, out + count);
        if (strchr(at, ',') == NULL)
            return count;
    }
    return 0;
}
