#include "cmd/sweep_int.h"

/* Says which shards have rows that a further run may bring to an end, as Slurm takes them. */
static void say_open(const struct options *o, const struct table *t, int open)
{
    SCOPED_BUF list = BUF_INIT;
    for (int shard = 0; shard < o->shards; shard++)
        for (int i = 0; i < t->count; i++)
            if (t->order[i].shard == shard && t->rows[t->order[i].index].state < ROW_FAILED) {
                buf_addf(&list, "%s%d", list.len > 0 ? "," : "", shard);
                break;
            }
    if (open == 0)
        note(o, "all %d rows are done", t->count);
    else if (o->shards > 1 && list.len > 0)
        note(o,
             "%d of %d rows are done; to run again: shards %s of %d, in Slurm 'sbatch "
             "--array=%s FILE'",
             t->count - open, t->count, list.ptr, o->shards, list.ptr);
    else
        note(o, "%d of %d rows are done", t->count - open, t->count);
}

/* Reads the table, and prints what the database knows of its rows. */
static int print_known(const struct options *o, int *open, struct status *st)
{
    SCOPED_BY(table_release) struct table table = {.count = 0};
    if (table_read(o, o->operands[1], o->target, &table, st) != 0 ||
        table_known(o->db, &table, st) != 0)
        return -1;
    *open = sweep_print(o, &table, -1);
    say_open(o, &table, *open);
    return 0;
}

int sweep_plan_run(const struct options *o, struct status *st)
{
    int open;
    return print_known(o, &open, st) == 0 ? EXIT_SUCCESS : -1;
}

int sweep_collect_run(const struct options *given, struct status *st)
{
    struct options o = *given;
    struct table checked;
    struct db *db = NULL;
    int bad = 0, open = 0, result = table_read(&o, o.operands[1], o.target, &checked, st);
    table_release(&checked);
    for (int i = 2; i < o.operand_count && result == 0; i++) {
        int shards = saved_shards(o.operands[i]);
        if (!options_has(&o, OPT(SHARDS)) && shards > o.shards)
            o.shards = shards;
        if (!file_exists(o.operands[i]))
            result = status_set(st, STATUS_USAGE, "there is no directory '%s'", o.operands[i]);
    }
    if (result == 0)
        result = db_open(o.db, DB_WRITE, &db, st);
    for (int i = 2; i < o.operand_count && result == 0; i++) {
        int found = texts_import(o.operands[i], "", db, st);
        bad += found;
        result = found < 0 ? -1 : 0;
    }
    db_close(db);
    if (result == 0)
        result = print_known(&o, &open, st);
    if (result != 0)
        return -1;
    return bad > 0 ? EXIT_FAILURE : open > 0 ? EXIT_NO_RESULT : EXIT_SUCCESS;
}
