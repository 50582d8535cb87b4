/* What a search found, in a sentence. */
#include "cmd/plans.h"
#include "cmd/search_int.h"

const char *verdict_doubt(const struct tune_report *r, unsigned *value)
{
    *value = (unsigned)r->best.value;
    for (int i = 0; i < r->baseline_count && r->unstable[0] == '\0'; i++)
        if (isfinite(r->baselines[i].speedup.median) && r->baselines[i].unstable[0] != '\0') {
            *value = plan_value(r->baselines[i].plan);
            return r->baselines[i].unstable;
        }
    return r->unstable;
}

const char *verdict_word(const struct tune_report *r)
{
    unsigned value;
    bool compared = false, alone = r->baseline_count == 0 && r->best.final;
    if (r->best.value < 0)
        return "no plan ran";
    if (verdict_doubt(r, &value)[0] != '\0')
        return "unstable";
    for (int i = 0; i < r->baseline_count; i++) {
        const struct baseline_time *b = &r->baselines[i];
        compared = compared || isfinite(b->speedup.median);
        if ((int)plan_value(b->plan) == r->best.value)
            return "a baseline";
        if (isfinite(b->speedup.median) && baseline_ties(b))
            return "a tie";
    }
    return compared ? "faster" : alone ? "fastest" : "not compared";
}

/* The command that measures the best plan and the baselines anew.  what: it does. */
static void print_again(const struct options *o, const char *when, const char *what)
{
    SCOPED_BUF command = BUF_INIT;
    options_command(o, "search", OPTS_PLANS | OPT(BASELINE), &command);
    printf("%-12s %s'%s --again' %s\n", "", when, command.ptr, what);
}

/* One line for each baseline. */
static void print_ratios(const struct tune_report *r, const char *label)
{
    for (int i = 0; i < r->baseline_count; i++) {
        const struct baseline_time *b = &r->baselines[i];
        SCOPED_BUF line = BUF_INIT;
        baseline_ratio(b, (int)plan_value(b->plan) == r->best.value, &line);
        printf("%-12s %s\n", i == 0 ? label : "", line.ptr);
    }
    if (r->baseline_count == 0)
        printf("%-12s the fastest of the plans measured\n", label);
}

static void print_doubt(unsigned value, const char *doubt)
{
    SCOPED_BUF name = BUF_INIT;
    plan_add(value, &name);
    printf("%-12s no winner: the time of %s is unstable: %s\n", "verdict", name.ptr, doubt);
}

void verdict_print(const struct options *o, const struct tune_report *r, bool elsewhere)
{
    unsigned value;
    const char *doubt = verdict_doubt(r, &value);
    if (r->best.value < 0) {
        printf("%-12s none: no plan %s\n", "verdict", r->total_trials > 0 ? "ran" : "was tried");
        return;
    }
    if (doubt[0] != '\0') {
        print_doubt(value, doubt);
        if (!elsewhere)
            print_again(o, "on a quiet machine ", "times it anew");
    }
    if (doubt[0] == '\0' || r->baseline_count > 0)
        print_ratios(r, doubt[0] != '\0' ? "as measured" : "verdict");
    if (!r->best.final && r->baseline_count > 0 && !elsewhere)
        print_again(o, "", "times them side by side");
}
