#include "base/base.h"

#include <inttypes.h>

void step_tell(const struct listener *to, const struct step *step)
{
    if (to->report != NULL)
        to->report(to->ctx, step);
}

double step_left(double spent_s, int64_t done, int64_t total)
{
    return done > 0 ? spent_s / (double)done * (double)(total - done) : NAN;
}

/* ---- the line -------------------------------------------------------------------------------- */

/* A part is named only if it lasts: else the line would flicker. */
#define PART_FIRST_S 1.0

static void note_step(struct progress_phase *phase, const struct step *step, double now)
{
    char name[sizeof(phase->name)];
    snprintf(name, sizeof(name), "%s", step->phase);
    if (strcmp(utf8_mend(name), phase->name) != 0) {
        memcpy(phase->name, name, sizeof(name));
        phase->begun_s = now;
    }
    phase->done = step->done;
    phase->total = step->total;
    phase->left_s = step->left_s;
    phase->told_s = now;
}

void progress_init(struct progress *p, bool terminal, const char *command, double now)
{
    *p = (struct progress){.terminal = terminal, .start_s = now, .shown_s = now};
    snprintf(p->work.name, sizeof(p->work.name), "%s", command);
    p->work.left_s = p->part.left_s = NAN;
}

void progress_work(struct progress *p, const struct step *step, double now)
{
    note_step(&p->work, step, now);
    p->part.name[0] = '\0';
}

void progress_part(struct progress *p, const struct step *step, double now)
{
    note_step(&p->part, step, now);
}

static void add_phase(const struct progress_phase *phase, struct buf *out)
{
    buf_adds(out, phase->name);
    if (phase->total > 0)
        buf_addf(out, " %" PRId64 " of %" PRId64, phase->done, phase->total);
    else if (phase->done > 0)
        buf_addf(out, " %" PRId64, phase->done);
}

/* Appends "1:23", "1:02:03". */
static void add_time(double seconds, struct buf *out)
{
    enum { MINUTE = 60, HOUR = 60 * MINUTE };
    long s = lround(fmin(fmax(seconds, 0), 3600e3));
    if (s >= HOUR)
        buf_addf(out, "%ld:%02ld:%02ld", s / HOUR, s / MINUTE % 60, s % MINUTE);
    else
        buf_addf(out, "%ld:%02ld", s / MINUTE, s % MINUTE);
}

/* Appends "plans 37 of 48, timing | best 41115 12.345 ms | 1:23, ~0:31 left". */
static void add_line(const struct progress *p, double now, struct buf *out)
{
    const struct progress_phase *timed = isfinite(p->work.left_s) ? &p->work : &p->part;
    bool part = p->part.name[0] != '\0';
    add_phase(&p->work, out);
    if (part && now - p->part.begun_s >= PART_FIRST_S) {
        buf_adds(out, ", ");
        add_phase(&p->part, out);
    }
    if (p->best[0] != '\0')
        buf_addf(out, " | %s", p->best);
    buf_adds(out, " | ");
    add_time(now - p->start_s, out);
    if (isfinite(timed->left_s) && (part || timed == &p->work)) {
        buf_adds(out, ", ~");
        add_time(timed->left_s - (now - timed->told_s), out);
        buf_adds(out, " left");
    }
}

bool progress_line(struct progress *p, double now, struct buf *out)
{
    double since = p->terminal ? now - p->start_s : now - p->shown_s;
    if (since < (p->terminal ? PROGRESS_FIRST_S : PROGRESS_EVERY_S))
        return false;
    p->shown_s = now;
    add_line(p, now, out);
    return true;
}
