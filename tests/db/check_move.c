/* Results as text: export and import. */
#include "tests/db/move_fixture.h"

#include "db/text_int.h"

#include <sys/wait.h>

TEST(export_import_export)
{
    int64_t study;
    struct db *db = open_named("a.db", &study);
    struct db_workload other = a_workload;
    other.text = "another";
    other.init = "wide";
    other.chain = "raw";
    fill(db, study);
    OK(db_study(db, &other, &a_target, "2", &study, &st));
    fill(db, study);
    db_close(db);

    SCOPED char *text = text_at("a.db");
    ck_assert_ptr_nonnull(strstr(text, "\"chain\":\"raw\""));
    ck_assert_ptr_null(strstr(text, "\"chain\":\"bert\""));
    struct db_moved moved = import_text("b.db", text);
    ck_assert_int_eq(moved.results, 8);
    ck_assert_int_eq(moved.added, 8);
    char *again = text_at("b.db");
    ck_assert_str_eq(text, again);
    moved = import_text("b.db", text);
    ck_assert_int_eq(moved.same, 8);
    free(again);
    again = text_at("b.db");
    ck_assert_str_eq(text, again);
    free(again);
}

/* ---- packs ----------------------------------------------------------------------------------- */

/* Whether each line of a text is one of another text. */
static void assert_lines_of(const char *part, const char *whole)
{
    char *lines = strdup(part), *rest = lines, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        ck_assert_msg(strstr(whole, line) != NULL, "%s", line);
    free(lines);
}

/* Of a study whose best plan won a comparison the winner and its choices alone; nothing of others.
 */
TEST(pack_has_winners)
{
    int64_t study, open;
    char id[HASH_TEXT_SIZE];
    struct db_choice choices[OP_COUNT], faster[OP_COUNT];
    SCOPED_BUF pack = BUF_INIT;
    struct status missing = STATUS_INIT;
    SCOPED_BY(db_best_release) struct db_best best;
    struct db_workload other = a_workload;
    struct db *db = open_named("a.db", &study);
    other.text = "another";
    OK(db_study(db, &other, &a_target, "2", &open, &st));
    add_plan_at(db, open, 41115, 2, NULL);
    ck_assert_int_eq(db_export_pack(db, &pack, &missing), -1);
    ck_assert_int_eq(missing.code, STATUS_NOT_FOUND);

    OK(db_search_start(db, study, "guided", "{}", id, &st));
    struct db_trial finals[] = {trial_of_plan(41115, choices), trial_of_plan(43690, faster)};
    for (int i = 0; i < 2; i++) {
        struct db_trial *t = &finals[i];
        OK(db_trial_add(db, study, t, &st));
        t->kind = DB_TRIAL_FINAL;
        t->search = t->comparison = id;
        t->median_ms = t->ci_low_ms = t->ci_high_ms = 2 - i;
        t->sample_count = 0;
    }
    OK(db_trials_add(db, study, finals, 2, &st));
    for (int last = 8; last <= 9; last++) { /* 8 alone is a segment of 43690 */
        const struct db_choice one = {{8, (int8_t)last}, "generated", "rows=8"};
        struct db_trial alone = segment_trial(&one, 1);
        OK(db_trial_add(db, study, &alone, &st));
    }
    buf_reset(&pack);
    OK(db_export_pack(db, &pack, &st));
    SCOPED char *all = text_of(db);
    assert_lines_of(pack.ptr, all);
    struct db_moved moved = import_text("b.db", pack.ptr);
    ck_assert_int_eq(moved.added, 2);
    db_close(db);
    db = open_named("b.db", &study);
    OK(db_best(db, study, &best, &st));
    ck_assert_int_eq(best.value, 43690);
    ck_assert(best.final);
    db_close(db);
}

/* Studies' lines in front of all others. */
static void write_studies_first(const char *name, const char *text)
{
    SCOPED_BUF out = BUF_INIT;
    for (int wanted = 2; wanted >= 0; wanted--)
        for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            bool is_study = memmem(line, (size_t)(end - line), "\"inputs\"", 8) != NULL;
            if ((line == text ? 2 : is_study) == wanted)
                buf_add(&out, line, (size_t)(end - line) + 1);
        }
    write_text(test_path(name), out.ptr);
}

/* Of two studies of it, whose lines mingle; not of a workload whose text begins or ends like it. */
TEST(a_workload_alone_is_read)
{
    int64_t study;
    static const char *const others[] = {"b=1 s=128 mask=causal chain=raw",
                                         "lb=1 s=128 mask=causal"};
    struct db *db = open_named("a.db", &study);
    fill(db, study);
    OK(db_study(db, &a_workload, &a_target, "2", &study, &st));
    fill(db, study);
    SCOPED char *wanted = text_of(db);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct db_workload other = a_workload;
        other.text = others[i];
        OK(db_study(db, &other, &a_target, "1", &study, &st));
        fill(db, study);
    }
    SCOPED char *all = text_of(db);
    db_close(db);
    write_studies_first("all.txt", all);
    db = open_named("b.db", &study);
    OK(db_import_workload(db, test_path("all.txt"), a_workload.text, &st));
    SCOPED char *found = text_of(db);
    ck_assert_int_eq(strcmp(found, wanted), 0); /* too long to be shown */
    write_text(test_path("headless.txt"), strchr(all, '\n') + 1);
    FAILS(db_import_workload(db, test_path("headless.txt"), "none", &st), STATUS_USAGE,
          "line 1: the first line has no format");
    db_close(db);
}

/* ---- what import refuses --------------------------------------------------------------------- */

/* In the text of fill(), the first `what` becomes `with`. */
static const struct {
    const char *what, *with, *message;
} broken[] = {
    {"fuseplan results", "fuseplan result", "line 1: the first line has no format"},
    {"{\"format\"", "\xef\xbb\xbf{\"format\"", ""},
    {"\"version\":1", "\"version\":2", "line 1: the version is 2, this fuseplan reads 1"},
    {"{\"format\"", "{\"f\":1,\"format\"", ""},
    {"\"inputs\":{", "\"inputs\":[", "line 2, column "},
    {"\"batch\":1", "\"batch\":-1", "line 2: 'batch' is -1; expected 1 to 65536"},
    {"\"batch\":1", "\"batch\":\"1\"", "'batch' is \"1\"; expected a whole number"},
    {"\"batch\":1,", "", "the member 'batch' is missing; expected a whole number"},
    {"\"batch\":1", "\"bitch\":2,\"batch\":1", "unknown member 'bitch'"},
    {"\"batch\":1", "\"batch\":0", "'batch' is 0; expected 1 to 65536"},
    {"\"heads\":12", "\"heads\":1025", "'heads' is 1025; expected 1 to 1024"},
    {"\"kind\":\"cpu\"", "\"kind\":\"tpu\"", "'kind' is 'tpu'; expected cpu or cuda"},
    {"\"layers_timed\":4", "\"layers_timed\":1025", "'layers_timed' is 1025; expected 0 to 1024"},
    {"\"created_utc\":\"2", "\"created_utc\":\"x", "expected a time as"},
    {"\"protocol\":\"1\"", "\"protocol\":1", "line 2: 'protocol' is 1; expected a text"},
    {"\"protocol\"", "\"inputs\"", "line 2, column "},
    {"\"stopped_by\":", "\"stopped\":", "unknown member 'stopped'"},
    {"\"ended_utc\":\"2", "\"ended_utc\":\"1x", "is not a time"},
    {"\"trial\":\"final\"", "\"trial\":\"finale\"", "'finale' is no kind of trial"},
    {"\"trial\":\"final\"", "\"trail\":\"final\"", "the line is no study, search or trial"},
    {"\"status\":\"ok\"", "\"status\":\"fine\"", "'fine' is no status"},
    {"\"reason_code\":\"compile\",", "", "the trial has no reason, but it failed"},
    {"\"value\":41115", "\"value\":57188", "a plan has a canonical value within 0..65535"},
    {"\"value\":41115", "\"value\":43690", "8 choices are there; expected 15"},
    {"\"2-6 generated", "\"2-5 generated", "choice 3 is of operators 2 to 5; segment 3 of plan"},
    {"\"2-6 generated rows=8\"", "\"2-6\"", "'2-6' is no choice"},
    {"\"2-6 generated", "\"2-16 generated", "is no choice"},
    {"1.25,", "", "5 samples are there; expected 6"},
    {"1.25,2,", "2.5,2.5,", "'median_ms' is 2, and the median of the samples 2.25"},
    {"1.25,", "-1,", "sample 0 is not above 0"},
    {"\"median_ms\":2", "\"median_ms\":0", "'median_ms' is 0; expected a finite time above 0"},
    {"\"median_ms\":2", "\"median_ms\":7", "the trial has a median outside its interval"},
    {"\"median_ms\":2", "\"median_ms\":null", "'median_ms' is null; expected a number"},
    {"\"median_ms\":2,", "", "the trial has no median, but it is ok"},
    {"\"stored_utc\":\"2", "\"stored_utc\":\"", "expected a time as"},
    {"\"trial\":\"plan\",", "\"trial\":\"plan\",\"trial\":\"plan\",", "duplicate"},
    {"\"trial\":\"plan\"", "\"trial\":\"plan\x01\"", "control character"},
};

/* The caller frees. */
static char *replaced(const char *text, const char *what, const char *with)
{
    struct buf out = BUF_INIT;
    const char *at = strstr(text, what);
    ck_assert_msg(at != NULL, "'%s' is not in %s", what, text);
    buf_add(&out, text, (size_t)(at - text));
    buf_adds(&out, with);
    buf_adds(&out, at + strlen(what));
    return buf_detach(&out);
}

TEST_LOOP(broken_text_is_refused_and_changes_nothing, 0, ARRAY_LEN(broken))
{
    int64_t study;
    struct db_moved moved[2];
    struct db *db = open_named("a.db", &study);
    fill(db, study);
    SCOPED char *good = text_of(db);
    db_close(db);
    SCOPED char *bad = replaced(good, broken[_i].what, broken[_i].with);
    write_text(test_path("good.txt"), good);
    write_text(test_path("bad.txt"), bad);

    db = open_named("b.db", &study);
    add_plan_at(db, study, 43690, 2, "2026-01-01T00:00:01.000Z");
    const char *paths[2] = {test_path("good.txt"), test_path("bad.txt")};
    SCOPED char *before = text_of(db);
    if (broken[_i].message[0] != '\0')
        FAILS(db_import(db, paths, 2, moved, &st), STATUS_USAGE, broken[_i].message);
    else
        OK(db_import(db, paths, 2, moved, &st));
    SCOPED char *after = text_of(db);
    ck_assert_int_eq(strcmp(before, after) == 0, broken[_i].message[0] != '\0');
    assert_whole(db);
    db_close(db);
}

TEST(line_is_told)
{
    static const struct {
        const char *text, *message;
    } texts[] = {
        {"", "is empty"},
        {"{", "line 1: the line has no end"},
        {TEXT_HEADER "\n[]\n", "line 2: a line is an object"},
        {TEXT_HEADER "\n{\"a\":1}\n", "line 2: the line names no study"},
        {TEXT_HEADER "\n{\"a\":\"caf\xc3\xa9\",\"study\":\"7\"}\n", "line 2: no line"},
        {TEXT_HEADER "\n\n", "line 2, column 1: '[' or '{' expected"},
    };
    int64_t study;
    struct db_moved moved;
    SCOPED_BY(db_close_at) struct db *db = open_named("a.db", &study);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *path = test_path("t.txt");
        write_text(test_path("t.txt"), texts[i].text);
        FAILS(db_import(db, &path, 1, &moved, &st), STATUS_USAGE, texts[i].message);
    }
}

TEST(pipe_is_read_once)
{
    int64_t study;
    struct db_moved moved;
    struct db *db = open_named("a.db", &study);
    add_plan_at(db, study, 41115, 3, "2026-01-01T00:00:00.000Z");
    SCOPED char *text = text_of(db);
    db_close(db);
    const char *path = test_path("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    pid_t pid = fork();
    if (pid == 0) {
        FILE *out = fopen(path, "w");
        _exit(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0 ? 0 : 1);
    }
    OK(db_import_check(path, &st));
    db = open_named("b.db", &study);
    OK(db_import(db, &path, 1, &moved, &st));
    ck_assert_int_eq(moved.added, 1);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    db_close(db);
}

SUITE("db/move", memory_dir_setup, test_dir_teardown)
