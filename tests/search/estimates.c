/* estimate_figures FILE...: leaves each recorded workload out in turn, and prints how well it is
 * estimated from the others, as tables in Markdown. */
#include "tests/search/held_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void print_percent(double share)
{
    if (isfinite(share))
        printf(" | %.2f", 100 * share);
    else
        printf(" | -");
}

static void print_row(const struct known_workload *w, const struct held_out *h)
{
    const struct estimated_plan *first = &h->estimate.plans[0];
    struct buf mask;
    buf_init(&mask);
    mask_text(&w->workload.mask_spec, &mask);
    printf("| (%d,%d) %s | %u", w->workload.batch, w->workload.seq_len, mask.ptr,
           plan_value(first->plan));
    print_percent(h->regret);
    print_percent(h->regret_16);
    printf(" | %+.1f | %.2f..%.2f | %d of %d |\n", 100 * h->error, first->ms.low / first->ms.median,
           first->ms.high / first->ms.median, h->inside, h->measured);
    buf_release(&mask);
}

static void print_table(const struct known_workloads *k, bool tokens)
{
    static struct held_out all[TABLES_MAX];
    printf("\n## %s\n\n"
           "| left out | plan | regret, %% | of 16, %% | error, %% | interval | inside |\n"
           "|---|---|---|---|---|---|---|\n",
           tokens ? "All workloads of as many tokens left out" : "One workload left out");
    for (int i = 0; i < k->count; i++) {
        all[i] = held_out_judge(k, i, tokens);
        print_row(&k->items[i], &all[i]);
    }
    struct held_out_summary s = held_out_summarise(all, k->count);
    printf(
        "\nOf %d workloads: the interval of the fastest measured plan holds for %.0f %%, those of "
        "all measured plans for %.0f %%; median error of its time %.1f %%. Regret of the plan: "
        "median %.2f %%, worst %.2f %%, of %d. A plan within 2 %% is among the first 16 for %d "
        "workloads, and not for %d; for %d this is unknown.\n",
        s.count, 100 * s.holds, 100 * s.inside, 100 * s.error_median, 100 * s.regret_median,
        100 * s.regret_worst, s.judged, s.within, s.beyond, s.count - s.within - s.beyond);
}

int main(int argc, char **argv)
{
    struct known_workloads k;
    struct status st = STATUS_INIT;
    if (argc < 2 || argc - 1 > TABLES_MAX) {
        fprintf(stderr, "usage: estimate_figures FILE...\n");
        return EXIT_FAILURE;
    }
    if (tables_read((const char *const *)argv + 1, argc - 1, &k, &st) != 0) {
        fprintf(stderr, "estimate_figures: %s\n", st.message);
        return EXIT_FAILURE;
    }
    print_table(&k, false);
    print_table(&k, true);
    known_release(&k);
    return EXIT_SUCCESS;
}
