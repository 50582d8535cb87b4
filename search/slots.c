#include "search/study_int.h"

struct reading {
    enum target_kind target;
    struct slot_record *slots;
};

int slot_of_choice(enum target_kind target, const struct db_choice *c)
{
    const struct impl *impl = impl_find(target, c->impl);
    return slot_of(c->segment, impl != NULL && impl->handwritten);
}

bool plan_has_slot(struct plan p, const bool slots[SLOT_COUNT])
{
    int of_plan[OP_COUNT], count = plan_slots(p, of_plan);
    for (int i = 0; i < count; i++)
        if (slots[of_plan[i]])
            return true;
    return false;
}

static void replace(char **text, char *by)
{
    free(*text);
    *text = by;
}

char *trial_reason(const struct db_trial *row)
{
    return buf_text("%s: %s", row->reason_code, row->reason);
}

struct interval row_us(const struct db_trial *row)
{
    return interval_times(1e3, db_trial_ms(row));
}

static int read_row(void *ctx, const struct db_trial *row)
{
    struct reading *r = ctx;
    const struct db_choice *c = &row->choices[0];
    struct slot_record *slot = &r->slots[slot_of_choice(r->target, c)];
    if (row->status != TRIAL_OK) {
        replace(&slot->reason, trial_reason(row));
    } else if (slot->impl == NULL || 1e3 * row->median_ms < slot->us.median) {
        replace(&slot->impl, mem_strdup(c->impl));
        replace(&slot->schedule, mem_strdup(c->schedule));
        slot->us = row_us(row);
    }
    return 0;
}

int slot_records_read(struct db *db, int64_t study, enum target_kind target,
                      struct slot_record out[SLOT_COUNT], struct status *st)
{
    struct reading r = {.target = target, .slots = out};
    memset(out, 0, SLOT_COUNT * sizeof(*out));
    return db_trials(db, study, DB_TRIAL_SEGMENT, read_row, &r, st);
}

void slot_records_release(struct slot_record slots[SLOT_COUNT])
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        free(slots[i].impl);
        free(slots[i].schedule);
        free(slots[i].reason);
    }
    memset(slots, 0, SLOT_COUNT * sizeof(*slots));
}
