/* The section of base.h on how far long work is.  Include base.h. */
#pragma once

#include "base/base.h"

/* ---- progress.c: how far long work is -----------------------------------------------------------
 *
 * Work that may take longer than a second reports its steps to a function of its caller.  A report
 * costs about a microsecond, so that work need not be sparing with them. */

struct step {
    const char *phase;   /* "compiling", "plans": borrowed until the report returns */
    int64_t done, total; /* steps of the phase; total 0: nobody knows how many there are, and with
                            done 0 they are not counted */
    double left_s;       /* how long the work still takes, estimated high; NaN: unknown */
};
typedef void step_report(void *ctx, const struct step *step);

/* Where steps are reported; nowhere if report is null. */
struct listener {
    step_report *report;
    void *ctx;
};
void step_tell(const struct listener *to, const struct step *step);

/* What the rest takes at the pace so far; NaN if nothing is done yet. */
double step_left(double spent_s, int64_t done, int64_t total);

/* The line that shows people the progress of a command.  A terminal has one line, which is drawn
 * again and again once the command has taken PROGRESS_FIRST_S; elsewhere there is a new line every
 * PROGRESS_EVERY_S. */
#define PROGRESS_FIRST_S 1.0
#define PROGRESS_EVERY_S 10.0

struct progress_phase {
    char name[96]; /* empty: none */
    int64_t done, total;
    double left_s, begun_s, told_s; /* begun, told: moments */
};

struct progress {
    bool terminal;
    double start_s, shown_s;
    struct progress_phase work; /* of the command: "plans 37 of 48" */
    struct progress_phase part; /* of that step: "timing, 3 of 20" */
    char best[64];              /* "best 41115 12.345 ms" */
};

/* now: a moment in seconds, from one clock for all calls.  command: shown until there is a step. */
void progress_init(struct progress *p, bool terminal, const char *command, double now);

/* Notes a step of the command, which ends the part before, or a part of such a step. */
void progress_work(struct progress *p, const struct step *step, double now);
void progress_part(struct progress *p, const struct step *step, double now);

/* Appends the line if it is to be shown now; returns whether it is. */
bool progress_line(struct progress *p, double now, struct buf *out);
