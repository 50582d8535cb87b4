/* Searches the rows of a shard: a process of `fuseplan search` each, so that whatever ends one
 * leaves the others alone, and as many at a time as --target names devices. */
#include "cmd/sweep_int.h"

#define SAVE_EVERY_S 30.0

/* ---- devices --------------------------------------------------------------------------------- */

static int add_slot(struct sweep *s, const char *name, struct status *st)
{
    struct target_name target;
    if (target_parse(name, &target, st) != 0)
        return -1;
    if (s->slot_count == SLOTS_MAX || strlen(name) >= sizeof(s->slots[0].target))
        return status_set(st, STATUS_USAGE, "--target names more than %d devices", SLOTS_MAX);
    struct slot *slot = &s->slots[s->slot_count++];
    *slot =
        (struct slot){.now = ROW_SEARCH_INIT, .next = ROW_SEARCH_INIT, .family = ROW_SEARCH_INIT};
    snprintf(slot->target, sizeof(slot->target), "%s", name);
    fingerprint_device(target, &slot->device);
    return 0;
}

static int add_all_gpus(struct sweep *s, struct status *st)
{
    for (int i = 0; i < SLOTS_MAX; i++) {
        struct fingerprint device;
        char name[24];
        fingerprint_device((struct target_name){.kind = TARGET_CUDA, .device = i}, &device);
        if (device.uuid[0] == '\0')
            break;
        snprintf(name, sizeof(name), "cuda:%d", i);
        if (add_slot(s, name, st) != 0)
            return -1;
    }
    return s->slot_count > 0 ? 0
                             : status_set(st, STATUS_ENVIRONMENT,
                                          "--target cuda:all, and no GPU can be used here; "
                                          "'fuseplan doctor' says why");
}

/* "cuda:all", or targets with commas between them, of which a number alone is a GPU's. */
static int find_slots(struct sweep *s, struct status *st)
{
    char here[16];
    struct target_name usual;
    if (s->o->target != NULL && strcmp(s->o->target, "cuda:all") == 0)
        return add_all_gpus(s, st);
    if (target_parse(NULL, &usual, st) != 0)
        return -1;
    snprintf(here, sizeof(here), "%s", target_names[usual.kind]);
    SCOPED char *list = mem_strdup(s->o->target != NULL ? s->o->target : here);
    for (char *rest = list, *one; (one = strsep(&rest, ",")) != NULL;) {
        char name[32];
        bool number = one[0] >= '0' && one[0] <= '9' && s->slot_count > 0;
        snprintf(name, sizeof(name), "%s%s", number ? "cuda:" : "", one);
        if (add_slot(s, name, st) != 0)
            return -1;
    }
    return 0;
}

/* ---- all rows ------------------------------------------------------------------------------ */

/* A failure of one's own ends the searches, which store what they have. */
static int search_rows(struct sweep *s, struct status *st)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    bool told = false, failed = false;
    s->start_s = clock_seconds();
    sweep_tell(s);
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < s->slot_count; i++) {
            failed |= sweep_look(s, &s->slots[i], !failed, failed ? STATUS_IGNORED : st) != 0;
            busy = busy || sweep_is_busy(&s->slots[i]);
        }
        for (int i = 0; i < s->slot_count && !told && (session_stop != 0 || failed); i++)
            sweep_stop(&s->slots[i]);
        told = told || session_stop != 0 || failed;
        if (busy && !failed && clock_seconds() - fmax(s->start_s, s->saving.ended_s) > SAVE_EVERY_S)
            failed = saving_write(&s->saving, s->db, false, st) != 0;
        if (busy)
            nanosleep(&pause, NULL);
    }
    return failed ? -1 : saving_write(&s->saving, s->db, true, st);
}

/* ---- the action ------------------------------------------------------------------------------ */

/* With --save and without --db a database of its own, on a disk of this machine. */
static int open_place(struct sweep *s, struct status *st)
{
    const char *tmp = getenv("TMPDIR");
    SCOPED_BUF path = BUF_INIT;
    s->db = s->o->db;
    if (s->o->save == NULL || s->o->db != NULL)
        return saving_begin(s->o, s->db, &s->saving, st);
    buf_addf(&path, "%s/fuseplan-sweep-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    if (mkdtemp(path.ptr) == NULL)
        return status_set(st, STATUS_ENVIRONMENT, "cannot make a directory '%s': %s", path.ptr,
                          strerror(errno));
    s->own_dir = mem_strdup(path.ptr);
    buf_adds(&path, "/plans.db");
    s->db = buf_detach(&path);
    return saving_begin(s->o, s->db, &s->saving, st);
}

/* Finds out which device goes on with a row.  One that is done on another device of the same model,
 * before the task came to this host for example, is not searched again. */
static void find_home(struct sweep *s, int at)
{
    struct table_row *row = &s->table->rows[s->rows[at].index];
    bool twin = false;
    for (int i = 0; i < s->slot_count && row->uuid[0] != '\0'; i++) {
        const struct fingerprint *here = &s->slots[i].device;
        if (strcmp(here->uuid, row->uuid) == 0)
            s->home[at] = i;
        twin = twin || strcmp(here->device, row->best.device) == 0;
    }
    if (s->home[at] < 0 && twin && row->state == ROW_DONE) {
        s->taken[at] = true;
        s->ended++;
    }
}

static int take_shard(struct sweep *s, struct status *st)
{
    if (table_known(s->db, s->table, st) != 0)
        return -1;
    s->rows = mem_alloc((size_t)s->table->count + 1, sizeof(*s->rows));
    for (int i = 0; i < s->table->count; i++)
        if (s->table->order[i].shard == s->o->shard)
            s->rows[s->count++] = s->table->order[i];
    s->taken = mem_alloc((size_t)s->count + 1, sizeof(*s->taken));
    s->home = mem_alloc((size_t)s->count + 1, sizeof(*s->home));
    for (int i = 0; i < s->count; i++) {
        s->home[i] = -1;
        find_home(s, i);
    }
    return 0;
}

static int exit_of(const struct sweep *s, int open)
{
    if (session_stop != 0) {
        note(s->o, "interrupted; all results are stored, and the same command goes on from here");
        return EXIT_INTERRUPTED;
    }
    if (sweep_gives_up(s)) {
        note(s->o,
             "%d rows in a row failed for the same reason: the machine needs a look; what "
             "was measured is stored",
             s->same);
        return EXIT_FAILURE;
    }
    if (s->broken_off) {
        note(s->o, "a search was ended from outside; the same command goes on from here");
        return EXIT_FAILURE;
    }
    return open > 0 ? EXIT_NO_RESULT : EXIT_SUCCESS;
}

/* Removes the database of this run alone, unless it has what could not be saved. */
static void close_place(struct sweep *s, bool saved)
{
    if (s->own_dir == NULL)
        return;
    if (saved || !file_exists(s->db))
        file_remove_all(s->own_dir, STATUS_IGNORED);
    else
        fprintf(stderr,
                "fuseplan sweep: what was measured is in '%s'; 'fuseplan db export --db %s -o "
                "FILE' writes it as a text for 'sweep collect'\n",
                s->db, s->db);
    free((char *)s->db);
    free(s->own_dir);
}

int sweep_run_run(const struct options *o, struct status *st)
{
    SCOPED_BY(table_release) struct table table = {.count = 0};
    struct sweep s = {.o = o, .table = &table};
    int open = 0;
    session_catch_signals();
    child_keep_ends();
    bool done = find_slots(&s, st) == 0 &&
                table_read(o, o->operands[1], s.slots[0].target, &table, st) == 0 &&
                open_place(&s, st) == 0 && take_shard(&s, st) == 0 && search_rows(&s, st) == 0 &&
                table_known(s.db, &table, st) == 0;
    if (done)
        open = sweep_print(o, &table, o->shard);
    close_place(&s, done);
    saving_release(&s.saving);
    free(s.rows);
    free(s.taken);
    free(s.home);
    return done ? exit_of(&s, open) : -1;
}
