/* The searches of a run: a process of `fuseplan search` each, so that whatever ends one leaves the
 * others alone.  On a device one has the turn, and others prepare. */
#include "cmd/sweep_int.h"

#include <sys/wait.h>

/* ---- a search -------------------------------------------------------------------------------- */

static int start_search(struct sweep *s, const struct slot *slot, int at, struct row_search *out,
                        struct status *st)
{
    int share = 0;
    if (options_has(s->o, OPT(JOBS)) || s->slot_count > 1) {
        share = (s->o->jobs > 0 ? s->o->jobs : cpu_threads()) / s->slot_count;
        share = share > 0 ? share : 1;
    }
    *out = (struct row_search){.at = at};
    return search_start(&s->table->rows[s->rows[at].index].o, slot->target, share, s->db,
                        &out->process, st);
}

static void give_turn(struct row_search *r)
{
    search_give_turn(&r->process);
    r->start_s = clock_seconds();
}

/* ---- ends ------------------------------------------------------------------------------------ */

void sweep_tell(const struct sweep *s)
{
    double spent_s = clock_seconds() - s->start_s;
    progress_step(
        NULL, &(struct step){"rows", s->ended, s->count, step_left(spent_s, s->ended, s->count)});
}

bool sweep_gives_up(const struct sweep *s)
{
    enum { SAME_FAILURES = 3 };
    return s->same >= SAME_FAILURES;
}

static void count_failure(struct sweep *s, const struct table_row *row, bool machine)
{
    bool same = machine && s->last_reason != NULL && strcmp(s->last_reason, row->reason) == 0;
    s->same = same ? s->same + 1 : machine;
    s->last_reason = machine ? row->reason : NULL;
}

/* Notes how the search of a row ended, and saves what it stored. */
static int end_search(struct sweep *s, struct slot *slot, int status, struct status *st)
{
    struct table_row *row = &s->table->rows[s->rows[slot->now.at].index];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool stopped = code == EXIT_INTERRUPTED || (code < 0 && session_stop != 0);
    row->seconds = clock_seconds() - slot->now.start_s;
    row->state = code == 0 ? ROW_DONE : stopped ? ROW_CUT_SHORT : ROW_FAILED;
    if (row->state == ROW_FAILED && code < 0) {
        row->reason = buf_text("its search was ended by signal %d", WTERMSIG(status));
    } else if (row->state == ROW_FAILED) {
        row->reason =
            code == EXIT_NO_RESULT ? mem_strdup("no plan ran") : search_said(&slot->now.process);
    }
    s->broken_off |= row->state == ROW_CUT_SHORT || code < 0;
    count_failure(s, row, row->state == ROW_FAILED && code != EXIT_NO_RESULT && code != EXIT_USAGE);
    search_release(&slot->now.process);
    s->ended++;
    progress_row(row->text + 1, sweep_state_names[row->state], slot->target);
    sweep_tell(s);
    return saving_write(&s->saving, s->db, false, st);
}

static void stop(const struct row_search *r)
{
    if (r->process.pid > 0)
        kill(r->process.pid, SIGTERM);
}

void sweep_stop(const struct slot *slot)
{
    stop(&slot->now);
}

bool sweep_is_busy(const struct slot *slot)
{
    return slot->now.process.pid > 0 || slot->next.process.pid > 0 || slot->family.process.pid > 0;
}

/* Rows whose results another device has are not for this one. */
static int next_row(const struct sweep *s, const struct slot *slot)
{
    SCOPED bool *taken = mem_alloc((size_t)s->count + 1, sizeof(*taken));
    for (int i = 0; i < s->count; i++)
        taken[i] = s->taken[i] || (s->home[i] >= 0 && &s->slots[s->home[i]] != slot);
    return sweep_next(s->rows, s->count, taken, slot->now.at);
}

/* The first row of another family than that of `at`; -1: there is none, or another device may take
 * it first. */
static int row_of_next_family(const struct sweep *s, int at)
{
    for (int i = at + 1; i < s->count && s->slot_count == 1; i++)
        if (!s->taken[i] && strcmp(s->rows[i].family, s->rows[at].family) != 0)
            return i;
    return -1;
}

/* The search of a row that the device takes: the one that waits, or a new one. */
static int take_row(struct sweep *s, struct slot *slot, int at, struct row_search *out,
                    struct status *st)
{
    s->taken[at] = true;
    if (slot->family.process.pid == 0 || slot->family.at != at)
        return start_search(s, slot, at, out, st);
    *out = slot->family;
    slot->family = ROW_SEARCH_INIT;
    return 0;
}

/* Starts searches that wait, as long as the one before them lends its compilers. */
static int prepare(struct sweep *s, struct slot *slot, struct status *st)
{
    enum search_says says = search_asks(&slot->now.process);
    if (slot->next.process.pid == 0) {
        int at = says == SEARCH_WORKS || slot->failed ? -1 : next_row(s, slot);
        return at >= 0 ? take_row(s, slot, at, &slot->next, st) : 0;
    }
    if (says == SEARCH_LEAVES && slot->next.start_s == 0)
        give_turn(&slot->next);
    int at = row_of_next_family(s, slot->next.at);
    if (at < 0 || slot->failed || slot->family.process.pid > 0 ||
        search_asks(&slot->next.process) != SEARCH_LENDS)
        return 0;
    return start_search(s, slot, at, &slot->family, st);
}

/* Begins the search of the next row, which may wait already. */
static int go_on(struct sweep *s, struct slot *slot, struct status *st)
{
    int at = slot->next.process.pid == 0 ? next_row(s, slot) : -1;
    slot->failed = false;
    if (at >= 0 && take_row(s, slot, at, &slot->next, st) != 0)
        return -1;
    if (slot->next.process.pid == 0)
        return 0;
    if (slot->next.start_s == 0)
        give_turn(&slot->next);
    slot->now = slot->next;
    slot->next = ROW_SEARCH_INIT;
    return 0;
}

static bool has_ended(const struct row_search *r, int *status)
{
    return r->process.pid > 0 && waitpid(r->process.pid, status, WNOHANG) == r->process.pid;
}

/* Releases a search that ended before its turn.  That says nothing of its row: memory may have been
 * short for two, for example. */
static void forget_ended(struct sweep *s, struct slot *slot, struct row_search *r)
{
    int status;
    if (!has_ended(r, &status))
        return;
    search_release(&r->process);
    s->taken[r->at] = false;
    slot->failed = true;
}

int sweep_look(struct sweep *s, struct slot *slot, bool more, struct status *st)
{
    int status;
    if (has_ended(&slot->now, &status) && end_search(s, slot, status, st) != 0)
        return -1;
    more = more && session_stop == 0 && !sweep_gives_up(s);
    if (!more || slot->now.process.pid > 0 || slot->next.start_s == 0)
        forget_ended(s, slot, &slot->next);
    forget_ended(s, slot, &slot->family);
    if (more)
        return slot->now.process.pid > 0 ? prepare(s, slot, st) : go_on(s, slot, st);
    stop(&slot->next);
    stop(&slot->family);
    return 0;
}
