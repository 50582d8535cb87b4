#include "cmd/db_int.h"

#include <unistd.h>

static const struct column columns[] = {
    {"path", "from", 0},  {"results", "results", 0},     {"added", "added", 0},
    {"same", "known", 0}, {"conflicts", "conflicts", 0}, {"replaced", "replaced", 0},
};

static void print_moved(const struct options *o, const char *const *paths,
                        const struct db_moved *moved, int count)
{
    struct output out;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < count; i++)
        output_row(&out, json_pack("{so sI sI sI sI sI}", "path", json_text(paths[i]), "results",
                                   (json_int_t)moved[i].results, "added",
                                   (json_int_t)moved[i].added, "same", (json_int_t)moved[i].same,
                                   "conflicts", (json_int_t)moved[i].conflicts, "replaced",
                                   (json_int_t)moved[i].replaced));
    output_end(&out);
}

/* Where results come from. */
struct source {
    int (*check)(const char *path, struct status *st); /* before a database is made */
    int (*store)(struct db *db, const char *const *paths, int count, struct db_moved *out,
                 struct status *st);
};

/* Stores the results of all files or of none, and prints what came of each. */
static int store_files(const struct options *o, struct session *s, const struct source *from,
                       struct status *st)
{
    const char *const *paths = o->operands + 1;
    int count = o->operand_count - 1;
    for (int i = 0; i < count; i++)
        if (from->check(paths[i], st) != 0)
            return -1;
    SCOPED struct db_moved *moved = mem_alloc((size_t)count, sizeof(*moved));
    if (db_open(o->db, DB_WRITE, &s->db, st) != 0)
        return -1;
    db_listen(s->db, (struct listener){.report = progress_step});
    if (from->store(s->db, paths, count, moved, st) != 0)
        return -1;
    print_moved(o, paths, moved, count);
    return EXIT_SUCCESS;
}

static int check_database(const char *path, struct status *st)
{
    SCOPED_BY(db_close_at) struct db *db = NULL;
    return operand_open(path, &db, st);
}

int db_merge_run(const struct options *o, struct session *s, struct status *st)
{
    static const struct source databases = {check_database, db_merge};
    return store_files(o, s, &databases, st);
}

int db_import_run(const struct options *o, struct session *s, struct status *st)
{
    static const struct source texts = {db_import_check, db_import};
    return store_files(o, s, &texts, st);
}

/* ---- export ---------------------------------------------------------------------------------- */

int db_export_run(const struct options *o, struct session *s, struct status *st)
{
    SCOPED_BUF text = BUF_INIT;
    db_listen(s->db, (struct listener){.report = progress_step});
    if (o->output == NULL && isatty(STDOUT_FILENO)) /* the line would stand among the results */
        progress_hide();
    if ((o->output != NULL && file_check_writable("--output", o->output, st) != 0) ||
        (options_has(o, OPT(PACK)) ? db_export_pack : db_export)(s->db, &text, st) != 0)
        return -1;
    if (o->output != NULL)
        return file_write(o->output, text.ptr, text.len, st);
    return fwrite(text.ptr, 1, text.len, stdout) == text.len
               ? EXIT_SUCCESS
               : status_set(st, STATUS_ENVIRONMENT, "cannot write the results: %s",
                            strerror(errno));
}
