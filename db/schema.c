#include "db/db_int.h"

/* Version 10, of fuseplan 0.2.0, in two parts, as C bounds a string.  docs/database.md describes
 * every table. */
static const char create_trials[] =
    "CREATE TABLE target ("
    "  id INTEGER PRIMARY KEY,"
    "  kind TEXT NOT NULL,"
    "  device TEXT NOT NULL,"
    "  uuid TEXT NOT NULL,"
    "  capability TEXT NOT NULL,"
    "  units INTEGER NOT NULL,"
    "  driver TEXT NOT NULL,"
    "  compiler TEXT NOT NULL,"
    "  libraries TEXT NOT NULL,"
    "  UNIQUE (kind, device, uuid, capability, units, driver, compiler, libraries)"
    ") STRICT;"

    "CREATE TABLE workload ("
    "  id INTEGER PRIMARY KEY,"
    "  text TEXT NOT NULL UNIQUE,"
    "  batch INTEGER NOT NULL,"
    "  seq_len INTEGER NOT NULL,"
    "  heads INTEGER NOT NULL,"
    "  head_size INTEGER NOT NULL,"
    "  ffn INTEGER NOT NULL,"
    "  layers INTEGER NOT NULL,"
    "  eps REAL NOT NULL,"
    "  dtype TEXT NOT NULL,"
    "  lengths TEXT NOT NULL,"
    "  mask TEXT NOT NULL,"
    "  chain TEXT NOT NULL DEFAULT 'bert'"
    ") STRICT;"

    "CREATE TABLE study ("
    "  id INTEGER PRIMARY KEY,"
    "  workload INTEGER NOT NULL REFERENCES workload (id),"
    "  target INTEGER NOT NULL REFERENCES target (id),"
    "  protocol TEXT NOT NULL,"
    "  seed INTEGER NOT NULL,"
    "  init TEXT NOT NULL,"
    "  created_utc TEXT NOT NULL,"
    "  trials INTEGER NOT NULL DEFAULT 0,"
    "  plans INTEGER NOT NULL DEFAULT 0,"
    "  UNIQUE (workload, target, protocol, seed, init)"
    ") STRICT;"

    "CREATE TABLE search ("
    "  id TEXT PRIMARY KEY,"
    "  study INTEGER NOT NULL REFERENCES study (id),"
    "  strategy TEXT NOT NULL,"
    "  options TEXT NOT NULL,"
    "  started_utc TEXT NOT NULL,"
    "  ended_utc TEXT,"
    "  stopped_by TEXT"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE segment ("
    "  id INTEGER PRIMARY KEY,"
    "  first_op INTEGER NOT NULL CHECK (first_op >= 0),"
    "  last_op INTEGER NOT NULL CHECK (last_op BETWEEN first_op AND 14),"
    "  UNIQUE (first_op, last_op)"
    ") STRICT;"

    "CREATE TABLE schedule ("
    "  id INTEGER PRIMARY KEY,"
    "  segment INTEGER NOT NULL REFERENCES segment (id),"
    "  impl TEXT NOT NULL,"
    "  knobs TEXT NOT NULL,"
    "  UNIQUE (segment, impl, knobs)"
    ") STRICT;"

    "CREATE TABLE plan ("
    "  value INTEGER PRIMARY KEY CHECK (value BETWEEN 0 AND 65535),"
    "  segments TEXT NOT NULL"
    ") STRICT;"

    "CREATE TABLE trial ("
    "  id INTEGER PRIMARY KEY,"
    "  study INTEGER NOT NULL REFERENCES study (id),"
    "  search TEXT REFERENCES search (id),"
    "  kind TEXT NOT NULL CHECK (kind IN ('segment', 'plan', 'final')),"
    "  plan INTEGER REFERENCES plan (value),"
    "  schedule INTEGER REFERENCES schedule (id),"
    "  status TEXT NOT NULL CHECK (status IN ('ok', 'censored', 'failed')),"
    "  reason_code TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  median_ms REAL,"
    "  ci_low_ms REAL,"
    "  ci_high_ms REAL,"
    "  build_s REAL,"
    "  verify_s REAL,"
    "  time_s REAL,"
    "  relative_error REAL,"
    "  layers_timed INTEGER NOT NULL,"
    "  sample_count INTEGER NOT NULL,"
    "  comparison TEXT NOT NULL,"
    "  resources TEXT NOT NULL,"
    "  stored_utc TEXT NOT NULL,"
    "  conditions TEXT NOT NULL DEFAULT '',"
    "  packed INTEGER NOT NULL DEFAULT 0 CHECK (packed IN (0, 1)),"
    "  CHECK ((kind = 'segment') = (plan IS NULL)),"
    "  CHECK ((kind = 'segment') = (schedule IS NOT NULL)),"
    "  CHECK (status <> 'ok' OR median_ms IS NOT NULL),"
    "  CHECK (status <> 'failed' OR reason_code <> '')"
    ") STRICT;"
    "CREATE INDEX trial_by_time ON trial (study, kind, stored_utc);"
    "CREATE INDEX trial_by_median ON trial (study, kind, median_ms) WHERE status = 'ok';"
    "CREATE INDEX trial_by_plan ON trial (study, plan) WHERE plan IS NOT NULL;"
    "CREATE INDEX trial_by_status ON trial (study, status, plan) WHERE status <> 'ok';"
    "CREATE UNIQUE INDEX trial_of_plan ON trial (study, plan) WHERE kind = 'plan';"
    "CREATE UNIQUE INDEX trial_of_schedule ON trial (study, schedule) WHERE schedule IS NOT NULL;"

    "CREATE TABLE choice ("
    "  trial INTEGER NOT NULL REFERENCES trial (id),"
    "  schedule INTEGER NOT NULL REFERENCES schedule (id),"
    "  PRIMARY KEY (trial, schedule)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE sample ("
    "  trial INTEGER NOT NULL REFERENCES trial (id),"
    "  round INTEGER NOT NULL,"
    "  ms REAL NOT NULL,"
    "  PRIMARY KEY (trial, round)"
    ") STRICT, WITHOUT ROWID;"

    /* counts that a list of studies can read where counting would walk all trials */
    "CREATE TRIGGER trial_added AFTER INSERT ON trial BEGIN"
    "  UPDATE study SET trials = trials + 1, plans = plans + (NEW.kind = 'plan')"
    "  WHERE id = NEW.study; END;"
    "CREATE TRIGGER trial_removed AFTER DELETE ON trial BEGIN"
    "  UPDATE study SET trials = trials - 1, plans = plans - (OLD.kind = 'plan')"
    "  WHERE id = OLD.study; END;";

/* Failures that gave way to a later trial of the same plan or schedule, and models. */
static const char create_rest[] =
    "CREATE TABLE failure ("
    "  id INTEGER PRIMARY KEY,"
    "  study INTEGER NOT NULL REFERENCES study (id),"
    "  search TEXT REFERENCES search (id),"
    "  kind TEXT NOT NULL CHECK (kind IN ('segment', 'plan')),"
    "  plan INTEGER REFERENCES plan (value),"
    "  schedule INTEGER REFERENCES schedule (id),"
    "  reason_code TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  build_s REAL,"
    "  verify_s REAL,"
    "  time_s REAL,"
    "  relative_error REAL,"
    "  conditions TEXT NOT NULL,"
    "  stored_utc TEXT NOT NULL,"
    "  CHECK ((kind = 'segment') = (plan IS NULL)),"
    "  CHECK ((kind = 'segment') = (schedule IS NOT NULL))"
    ") STRICT;"
    "CREATE INDEX failure_by_study ON failure (study, stored_utc);"

    "CREATE TABLE model ("
    "  id INTEGER PRIMARY KEY,"
    "  study INTEGER REFERENCES study (id),"
    "  name TEXT NOT NULL,"
    "  features INTEGER NOT NULL,"
    "  seed INTEGER NOT NULL,"
    "  quantile REAL NOT NULL,"
    "  rows TEXT NOT NULL,"
    "  report TEXT NOT NULL,"
    "  trained_utc TEXT NOT NULL,"
    "  CHECK ((study IS NULL) = (rows <> ''))"
    ") STRICT;"
    "CREATE UNIQUE INDEX model_by_name ON model (coalesce(study, 0), name);";

/* Plans of several precisions are plans of one study.  Those before had fp16 alone. */
static const char add_precision[] =
    "ALTER TABLE trial ADD COLUMN precision INTEGER NOT NULL DEFAULT 0"
    "  CHECK (precision BETWEEN 0 AND 15);"
    "ALTER TABLE failure ADD COLUMN precision INTEGER NOT NULL DEFAULT 0"
    "  CHECK (precision BETWEEN 0 AND 15);"
    "DROP INDEX trial_of_plan;"
    "CREATE UNIQUE INDEX trial_of_plan ON trial (study, plan, precision) WHERE kind = 'plan';";

const char *const schema_migrations[] = {create_trials, create_rest, add_precision};
const int schema_version = SCHEMA_FIRST + ARRAY_LEN(schema_migrations) - 1;

static int run(sqlite3 *handle, const char *path, const char *sql, struct status *st)
{
    int result = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : db_fail(handle, path, result, st);
}

static int keep_int(void *out, int columns, char **values, char **names)
{
    (void)columns;
    (void)names;
    if (values[0] == NULL) /* SQLite has no memory for it */
        return -1;
    *(int *)out = (int)strtol(values[0], NULL, 10);
    return 0;
}

/* A migration that rebuilds a table could leave rows that refer to missing ones. */
static int check_references(sqlite3 *handle, const char *path, struct status *st)
{
    int orphans = 0;
    int result = sqlite3_exec(handle, "SELECT count(*) FROM pragma_foreign_key_check", keep_int,
                              &orphans, NULL);
    if (result != SQLITE_OK)
        return db_fail(handle, path, result, st);
    if (orphans > 0)
        return status_set(st, STATUS_DATABASE,
                          "database '%s': %d rows point to rows that are missing", path, orphans);
    return 0;
}

static int apply(sqlite3 *handle, const char *path, const char *const *migrations, int first,
                 int last, struct status *st)
{
    /* Read inside the transaction: another process may have migrated before it began. */
    int version = 0;
    int result = sqlite3_exec(handle, "PRAGMA user_version", keep_int, &version, NULL);
    if (result != SQLITE_OK)
        return db_fail(handle, path, result, st);
    for (int v = version == 0 ? first : version + 1; v <= last; v++)
        if (run(handle, path, migrations[v - first], st) != 0)
            return status_prefix(st, "cannot migrate to schema version %d", v);

    char marks[96];
    snprintf(marks, sizeof(marks), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             DB_APPLICATION_ID, version > last ? version : last);
    if (run(handle, path, marks, st) != 0)
        return -1;
    return check_references(handle, path, st);
}

int schema_migrate(sqlite3 *handle, const char *path, const char *const *migrations, int first,
                   int last, struct status *st)
{
    /* Off, so that a migration may rebuild a table that others refer to.  SQLite ignores this
     * pragma inside a transaction. */
    if (run(handle, path, "PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE", st) != 0)
        return -1;
    int result = apply(handle, path, migrations, first, last, st);
    if (result == 0)
        result = run(handle, path, "COMMIT", st);
    if (sqlite3_get_autocommit(handle) == 0)
        sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
    if (run(handle, path, "PRAGMA foreign_keys = ON", st) != 0)
        result = -1;
    return result;
}
