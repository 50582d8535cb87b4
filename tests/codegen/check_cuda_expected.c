/* The schedule that the model expects to be the fastest, against times that a GPU took: columns of
 * a file, "tokens,segment,schedule,us", "batch,seq_len,mask,schedule,us", or for packed tokens of
 * sentences of some mean length "batch,seq_len,mean,mask,schedule,us", where those with a mean of 0
 * are not padded.  Schedules that take 2.5 times as long as the fastest of their point are not in
 * the file. */
#include "codegen/codegen.h"
#include "tests/suite.h"

static const struct {
    const char *impl, *file;
    int points;
    double mean, most; /* of the default's time over the fastest one's, at most */
    double most_kept;  /* the same of the fastest one that a search may try */
    unsigned precision;
} tables[] = {{"hopper_gemm", "h100-gemm-times.csv", 60, 1.02, 1.19, 1.04, 0},
              {"hopper_gemm", "h200-e4m3-times.csv", 16, 1.01, 1.08, 1, GEMM_ALL},
              {"hopper_attention", "h200-attention-times.csv", 92, 1.01, 1.07, 1, 0},
              {"hopper_attention", "h200-sentences-times.csv", 10, 1.04, 1.21, 1, 0}};

struct point {
    char name[256]; /* the columns in front of the schedule */
    struct segment segment;
    struct workload w;
    char usual[80]; /* schedule */
    double usual_us, least_us;
    double least_expected_us, least_kept_us; /* of those that are not expected to be far behind */
};

/* Reads "128,0-0", "8,512,strided" or "256,128,27,full" into a workload. */
static void open_point(struct point *p, const char *name)
{
    int tokens, first, last, mean = 0;
    char mask[32] = "full";
    snprintf(p->name, sizeof(p->name), "%s", name);
    workload_init(&p->w);
    p->w.batch = 1;
    p->w.dtype = DTYPE_FP16;
    bool gemm = sscanf(name, "%d,%d-%d", &tokens, &first, &last) == 3;
    if (gemm)
        p->w.seq_len = tokens;
    else if (sscanf(name, "%d,%d,%d,%31s", &p->w.batch, &p->w.seq_len, &mean, mask) != 4)
        ck_assert_int_eq(sscanf(name, "%d,%d,%31s", &p->w.batch, &p->w.seq_len, mask), 3);
    if (mean > 0)
        OK(workload_draw_lengths(&p->w, mean, 1, &st));
    p->segment = gemm ? (struct segment){(int8_t)first, (int8_t)last} : (struct segment){1, 6};
    OK(mask_parse(mask, &p->w.mask_spec, &st));
    OK(workload_check(&p->w, &st));
    if (!gemm)
        OK(workload_build_mask(&p->w, NULL, &st));
    p->usual_us = NAN;
    p->least_us = p->least_kept_us = p->least_expected_us = INFINITY;
}

static void choose(struct point *p, const char *impl, unsigned precision)
{
    enum { CHOICES = 200 };
    static struct choice choices[CHOICES];
    SCOPED_BUF text = BUF_INIT;
    struct build_target t = build_target_of(TARGET_CUDA, "sm_90", false, &p->w);
    t.precision = precision;
    int count = choices_for(&t, p->segment, false, CHOICES, choices), i = 0;
    while (i < count && strcmp(choices[i].impl->name, impl) != 0)
        i++;
    ck_assert_int_lt(i, count);
    p->least_expected_us = choice_expected_us(&choices[i], &p->w);
    schedule_text(choices[i].impl, &choices[i].schedule, &text);
    snprintf(p->usual, sizeof(p->usual), "%s", text.ptr);
}

static bool is_kept(const struct point *p, const char *impl, const char *schedule)
{
    struct choice c;
    OK(choice_parse(TARGET_CUDA, p->w.chain, p->segment, impl, schedule, &c, &st));
    return !(choice_expected_us(&c, &p->w) > choice_far_behind_us(p->least_expected_us));
}

/* Adds the logarithm of what the default of a finished point lost. */
static void judge(struct point *p, double most_kept, double *sum, double *most)
{
    ck_assert_msg(p->least_kept_us <= most_kept * p->least_us,
                  "%s: the fastest schedule that is not left out takes %.3f times as long", p->name,
                  p->least_kept_us / p->least_us);
    ck_assert_msg(!isnan(p->usual_us), "%s: '%s' is not among its times", p->name, p->usual);
    double ratio = p->usual_us / p->least_us;
    *sum += log(ratio);
    *most = fmax(*most, ratio);
    workload_release(&p->w);
}

TEST_LOOP(defaults_are_near_the_fastest, 0, ARRAY_LEN(tables))
{
    char path[512], line[256], schedule[80];
    struct point p = {.name = ""};
    double us, sum = 0, most = 0;
    int points = 0;
    snprintf(path, sizeof(path), "%s/%s", TEST_DATA, tables[_i].file);
    FILE *in = fopen(path, "re");
    ck_assert_ptr_nonnull(in);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), in)); /* names of columns */
    while (fgets(line, sizeof(line), in) != NULL) {
        char *equal = strchr(line, '='), *comma = strrchr(line, ',');
        ck_assert(equal != NULL && comma != NULL);
        while (*equal != ',')
            equal--;
        *equal = *comma = '\0';
        snprintf(schedule, sizeof(schedule), "%s", equal + 1);
        us = strtod(comma + 1, NULL);
        if (strcmp(line, p.name) != 0) {
            if (points++ > 0)
                judge(&p, tables[_i].most_kept, &sum, &most);
            open_point(&p, line);
            choose(&p, tables[_i].impl, tables[_i].precision);
        }
        p.least_us = fmin(p.least_us, us);
        if (is_kept(&p, tables[_i].impl, schedule))
            p.least_kept_us = fmin(p.least_kept_us, us);
        if (strcmp(schedule, p.usual) == 0)
            p.usual_us = us;
    }
    fclose(in);
    judge(&p, tables[_i].most_kept, &sum, &most);
    ck_assert_int_eq(points, tables[_i].points);
    ck_assert_msg(exp(sum / points) <= tables[_i].mean && most <= tables[_i].most,
                  "%s: defaults take %.3f times as long as the fastest schedules, %.3f at most",
                  tables[_i].impl, exp(sum / points), most);
}

SUITE("cuda_expected", NULL, NULL)
