/* The statements that db runs, as X(ID, sql); each list of them includes this file.  The names of
 * their columns are the names in the rules of rows.c.  EXPLAIN QUERY
 * PLAN shows no scan of trial, choice or sample in any but INFO: tests/db/check_schema.c. */

/* What the tables of text_fields.c name, in their order. */
#define WORKLOAD_COLUMNS                                                                           \
    "text, batch, seq_len, mask, heads, head_size, ffn, layers, eps, dtype, lengths"
#define TARGET_COLUMNS "device, uuid, capability, units, driver, compiler, libraries"
#define TRIAL_COLUMNS                                                                              \
    "comparison, packed, precision, stored_utc, reason_code, reason, median_ms, ci_low_ms,"        \
    " ci_high_ms, sample_count, layers_timed, relative_error, build_s, verify_s, time_s, search,"  \
    " resources, conditions"

/* When the newest trial of a study was stored; of one kind at a time, as the index has them. */
#define NEWEST(study, kind)                                                                        \
    "coalesce((SELECT max(stored_utc) FROM trial WHERE study = " study " AND kind = '" kind        \
    "'), '')"

/* Whether a final is of a search of plans of precision ?2.  Where a search compared plans in e4m3,
 * its plans in fp16 are baselines: that says nothing of fp16's best plan. */
#define IS_SEARCHED(final)                                                                         \
    " AND NOT EXISTS (SELECT 1 FROM search WHERE search.id = " final ".search"                     \
    "   AND (strategy = 'bench' OR ?2 = 0 AND strategy <> 'precisions'"                            \
    "    AND EXISTS (SELECT 1 FROM trial AS beside WHERE beside.study = ?1"                        \
    "      AND beside.kind = 'final' AND beside.comparison = " final ".comparison"                 \
    "      AND beside.precision > 0)))"

X(BEGIN_READ, "BEGIN")
X(BEGIN_WRITE, "BEGIN IMMEDIATE")
X(COMMIT, "COMMIT")
X(ROLLBACK, "ROLLBACK")

/* Each adds a row or finds it: RETURNING gives the id of a row that is there only if it is set. */
X(WORKLOAD_ADD, "INSERT INTO workload (" WORKLOAD_COLUMNS ", chain) VALUES"
                " (?,?,?,?,?,?,?,?,?,?,?,coalesce(nullif(?,''),'bert'))"
                " ON CONFLICT DO UPDATE SET text = text RETURNING id")
X(TARGET_ADD, "INSERT INTO target (kind, " TARGET_COLUMNS ") VALUES (?,?,?,?,?,?,?,?)"
              " ON CONFLICT DO UPDATE SET kind = kind RETURNING id")
X(STUDY_ADD, "INSERT INTO study (workload, target, protocol, created_utc, init, seed)"
             " VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE"
             " SET created_utc = min(created_utc, excluded.created_utc) RETURNING id")
X(STUDY_NEAREST,
  "SELECT study.id AS study FROM workload"
  " JOIN study ON study.workload = workload.id"
  " JOIN target ON target.id = study.target"
  " WHERE workload.text = ?1 AND target.kind = ?2"
  " ORDER BY EXISTS (SELECT 1 FROM trial"
  "   WHERE study = study.id AND kind = 'plan' AND status = 'ok')"
  "  OR EXISTS (SELECT 1 FROM trial"
  "   WHERE study = study.id AND kind = 'final' AND status = 'ok') DESC,"
  "  4 * (device IS ?3) + (uuid IS ?4) + (capability IS ?5) + (units IS ?6)"
  "  + (driver IS ?7) + 2 * (protocol IS ?8) + (init IS ?9) + (seed IS ?10) DESC,"
  "  max(" NEWEST("study.id", "plan") ", " NEWEST("study.id", "final") ") DESC,"
                                                                       "  study.id DESC")
X(STUDY_READ, "SELECT kind AS target_kind, " TARGET_COLUMNS
              ", protocol, init, seed, mask FROM study JOIN target ON target.id = study.target"
              " JOIN workload ON workload.id = study.workload WHERE study.id = ?")
X(STUDIES_BESIDE,
  "SELECT study.id AS study, workload.text AS text FROM study AS own"
  " JOIN workload AS asked ON asked.id = own.workload JOIN study ON study.target = own.target"
  " JOIN workload ON workload.id = study.workload WHERE own.id = ? AND study.id <> own.id"
  " AND workload.heads = asked.heads AND workload.head_size = asked.head_size"
  " AND workload.ffn = asked.ffn AND workload.layers = asked.layers"
  " AND study.protocol = own.protocol AND study.seed = own.seed AND study.init = own.init"
  " ORDER BY study.id DESC")

X(WORKLOADS,
  "SELECT " WORKLOAD_COLUMNS ", nullif(chain, 'bert') AS chain, kind AS target_kind FROM study"
  " JOIN workload ON workload.id = study.workload"
  " JOIN target ON target.id = study.target"
  " WHERE EXISTS (SELECT 1 FROM trial"
  "   WHERE study = study.id AND kind = 'plan' AND status = 'ok')"
  "  OR EXISTS (SELECT 1 FROM trial"
  "   WHERE study = study.id AND kind = 'final' AND status = 'ok' AND NOT EXISTS"
  "   (SELECT 1 FROM search WHERE search.id = trial.search AND strategy = 'bench'))"
  " GROUP BY workload.id, kind ORDER BY"
  "  max(max(" NEWEST("study.id", "plan") ", " NEWEST("study.id", "final") ")) DESC,"
                                                                           "  max(study.id) DESC")
X(STUDIES,
  "SELECT study.id AS study, " WORKLOAD_COLUMNS ", nullif(chain, 'bert') AS chain, init, seed,"
  " kind AS target_kind, " TARGET_COLUMNS ", protocol, created_utc, trials, plans,"
  " max(" NEWEST("study.id", "segment") ", " NEWEST(
      "study.id",
      "plan") ","
              "  " NEWEST("study.id",
                          "final") ") AS newest_utc"
                                   " FROM study JOIN workload ON workload.id = study.workload"
                                   " JOIN target ON target.id = study.target ORDER BY newest_utc "
                                   "DESC, study.id DESC")

X(SEGMENT_ADD, "INSERT INTO segment (first_op, last_op) VALUES (?,?) ON CONFLICT DO NOTHING")
X(SCHEDULE_ADD, "INSERT INTO schedule (segment, impl, knobs) VALUES"
                " ((SELECT id FROM segment WHERE first_op = ? AND last_op = ?), ?, ?)")
X(SCHEDULE_FIND, "SELECT schedule.id AS schedule FROM segment"
                 " JOIN schedule ON schedule.segment = segment.id"
                 " WHERE first_op = ? AND last_op = ? AND impl = ? AND knobs = ?")
X(PLAN_ADD, "INSERT INTO plan (value, segments) VALUES (?,?) ON CONFLICT DO NOTHING")
/* OR ROLLBACK, as each statement that changes several rows: to undo less than the transaction,
 * SQLite would keep a journal of each such statement. */
X(TRIAL_ADD,
  "INSERT OR ROLLBACK INTO trial (study, kind, plan, schedule, status, " TRIAL_COLUMNS ") VALUES"
  " (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,nullif(?,''),?,?)"
  " ON CONFLICT DO NOTHING")
/* When a new trial is stored: now, or if the clock went back with the newest trial of the study. */
X(TRIAL_UTC, "SELECT max(?2, " NEWEST("?1", "segment") ", " NEWEST(
                 "?1", "plan") ","
                               "  " NEWEST("?1", "final") ") AS stored_utc")
/* One statement for all choices of a trial; a schedule that is null is none. */
X(CHOICES_ADD, "INSERT OR ROLLBACK INTO choice (trial, schedule) SELECT ?1, column1 FROM (VALUES"
               " (?2),(?3),(?4),(?5),(?6),(?7),(?8),(?9),(?10),(?11),(?12),(?13),(?14),(?15),(?16)"
               ") WHERE column1 IS NOT NULL")
X(SAMPLE_ADD, "INSERT INTO sample (trial, round, ms) VALUES (?,?,?)")
/* ?3: a plan's trial, of which only it and those of its choices are read; null: all are.  ?4: the
 * precision of plans, and of segments at most; null: all are read. */
X(TRIALS, "SELECT id AS trial, plan AS its_plan, schedule AS its_schedule, status,"
          " " TRIAL_COLUMNS ","
          " (SELECT strategy FROM search WHERE search.id = trial.search) AS strategy"
          " FROM trial WHERE study = ?1 AND kind = ?2 AND (?3 IS NULL OR id = ?3"
          "  OR schedule IN (SELECT schedule FROM choice WHERE trial = ?3))"
          " AND (?4 IS NULL OR precision = ?4 OR (kind = 'segment' AND precision & ~?4 = 0))"
          " ORDER BY stored_utc, id")
X(SCHEDULE, "SELECT first_op, last_op, impl, knobs FROM schedule"
            " JOIN segment ON segment.id = schedule.segment WHERE schedule.id = ?")
X(CHOICES, "SELECT first_op, last_op, impl, knobs FROM choice"
           " JOIN schedule ON schedule.id = choice.schedule"
           " JOIN segment ON segment.id = schedule.segment"
           " WHERE choice.trial = ? ORDER BY first_op")

/* Merging stores old trials after newer ones: so the order of time is the order of stored_utc, and
 * of id only among trials of one millisecond.
 *
 * The winner of the newest comparison of a search.  The last columns are its time in its search and
 * when the comparison was stored. */
X(BEST_FINAL, "SELECT id AS trial, plan, median_ms, ci_low_ms, ci_high_ms, comparison,"
              " (SELECT options FROM search WHERE search.id = trial.search) AS options, stored_utc,"
              " (SELECT device FROM study JOIN target ON target.id = study.target"
              "   WHERE study.id = trial.study) AS device,"
              " (SELECT median_ms FROM trial AS own WHERE own.study = trial.study"
              "   AND own.plan = trial.plan AND own.precision = trial.precision"
              "   AND own.kind = 'plan' AND own.status = 'ok')"
              " AS own_ms, packed FROM trial WHERE study = ?1 AND kind = 'final'"
              " AND status = 'ok' AND precision = ?2"
              " AND comparison = (SELECT comparison FROM trial AS newest"
              "   WHERE newest.study = ?1 AND newest.kind = 'final' AND newest.status = 'ok'"
              "   AND newest.precision = ?2" IS_SEARCHED(
                  "newest") "   ORDER BY newest.stored_utc DESC, newest.id DESC LIMIT 1)"
                            " AND ?3 IN (0, id) ORDER BY median_ms, id LIMIT 1")
X(FINALS_ABOVE, "SELECT id AS trial FROM trial WHERE study = ? AND precision = ? AND kind = 'final'"
                " AND status = 'ok' AND comparison = ? AND plan > ? ORDER BY plan DESC")
X(BEST_PLAN, "SELECT id AS trial, plan, median_ms, ci_low_ms, ci_high_ms, comparison,"
             " (SELECT options FROM search WHERE search.id = trial.search) AS options, stored_utc,"
             " (SELECT device FROM study JOIN target ON target.id = study.target"
             "   WHERE study.id = trial.study) AS device, packed FROM trial"
             " WHERE study = ? AND precision = ? AND kind = 'plan' AND status = 'ok'"
             " AND (stored_utc, id) > (?, ?) AND median_ms < ? ORDER BY median_ms, id LIMIT 1")
X(COMPARED, "SELECT comparison FROM trial WHERE study = ?1 AND kind = 'final' AND status = 'ok'"
            " AND precision = ?2"
            " AND NOT EXISTS (SELECT 1 FROM trial AS later WHERE later.study = ?1"
            "   AND later.kind = 'plan' AND later.precision = ?2"
            "   AND (later.stored_utc, later.id) > (trial.stored_utc, trial.id))" IS_SEARCHED(
                "trial") " ORDER BY stored_utc DESC, id DESC LIMIT 1")
X(RIVAL, "SELECT plan FROM trial WHERE study = ? AND precision = ? AND kind = 'final'"
         " AND comparison = ? AND status = 'ok' AND plan <> ?"
         " ORDER BY sample_count DESC, median_ms LIMIT 1")
/* +: SQLite would plan the statement anew for each kind, to see whether trial_of_plan holds it. */
X(PLAN_TIME, "SELECT id AS trial, status, reason, median_ms, ci_low_ms, ci_high_ms, stored_utc,"
             " conditions, packed FROM trial"
             " WHERE study = ? AND plan = ? AND precision = ? AND +kind = ? AND comparison = ?"
             " ORDER BY stored_utc DESC, id DESC LIMIT 1")
X(SAMPLES, "SELECT ms FROM sample WHERE trial = ? ORDER BY round")
X(BEST_CHOICES, "SELECT first_op, last_op, impl, knobs, (SELECT median_ms FROM trial"
                "   WHERE trial.study = ?2 AND trial.schedule = choice.schedule"
                "   AND status = 'ok') AS median_ms FROM choice"
                " JOIN schedule ON schedule.id = choice.schedule"
                " JOIN segment ON segment.id = schedule.segment"
                " WHERE choice.trial = ?1 ORDER BY first_op")
/* The term status <> 'ok' is redundant, but without it SQLite does not use trial_by_status. */
X(PLAN_COUNTS, "SELECT (SELECT count(*) FROM"
               " (SELECT DISTINCT plan FROM trial WHERE study = ?1 AND plan IS NOT NULL"
               "   AND precision = ?2)),"
               " (SELECT count(*) FROM (SELECT DISTINCT plan FROM trial WHERE study = ?1"
               "   AND status <> 'ok' AND status = 'failed' AND plan IS NOT NULL"
               "   AND precision = ?2)),"
               " (SELECT count(*) FROM (SELECT DISTINCT plan FROM trial WHERE study = ?1"
               "   AND status <> 'ok' AND status = 'censored' AND plan IS NOT NULL"
               "   AND precision = ?2))")
X(PLAN_VALUES, "SELECT DISTINCT plan FROM trial WHERE study = ? AND precision = ?"
               " AND plan IS NOT NULL ORDER BY plan")

X(SEARCH_ID, "SELECT lower(hex(randomblob(16)))")
/* The last search of a study is the newest, though the clock went back. */
X(SEARCH_ADD, "INSERT INTO search (id, study, strategy, options, started_utc)"
              " VALUES (?1,?2,?3,?4, max(?5, coalesce((SELECT"
              " strftime('%Y-%m-%dT%H:%M:%fZ', max(started_utc), '+0.001 seconds')"
              " FROM search WHERE study = ?2), '')))")
X(SEARCH_END, "UPDATE search SET stopped_by = ?, ended_utc = max(?, started_utc) WHERE id = ?")
X(SEARCH_PUT, "INSERT INTO search (id, study, strategy, options, started_utc) VALUES (?,?,?,?,?)"
              " ON CONFLICT DO NOTHING")
/* Of a search in two databases, one may be a copy from before it ended. */
X(SEARCH_PUT_END, "UPDATE search SET ended_utc = ?2, stopped_by = ?3 WHERE id = ?1"
                  " AND ended_utc IS NULL AND ?2 <> ''")
X(SEARCH_STUDY, "SELECT study FROM search WHERE id = ?")
X(SEARCHES, "SELECT id AS search, strategy, options, started_utc, ended_utc, stopped_by FROM search"
            " WHERE study = ? ORDER BY started_utc, id")
/* +: as above. */
X(TWIN_PLAN,
  "SELECT id AS trial, stored_utc, status, median_ms, ci_low_ms, ci_high_ms, time_s FROM trial"
  " WHERE study = ? AND plan = ? AND precision = ? AND +kind = ? AND comparison = ?"
  " ORDER BY stored_utc DESC LIMIT 1")
X(TWIN_SEGMENT, "SELECT id AS trial, stored_utc, status, median_ms, ci_low_ms, ci_high_ms, time_s"
                " FROM trial WHERE study = ? AND schedule = ?")
X(FAILED_PLAN, "SELECT id FROM trial WHERE study = ? AND plan = ? AND precision = ?"
               " AND kind = 'plan'"
               " AND status = 'failed'")
X(FAILED_SEGMENT, "SELECT id FROM trial WHERE study = ? AND schedule = ? AND status = 'failed'")
X(FAILURE_KEEP, "INSERT INTO failure (study, search, kind, plan, schedule, reason_code, reason,"
                " build_s, verify_s, time_s, relative_error, conditions, stored_utc, precision)"
                " SELECT study, search, kind, plan, schedule, reason_code, reason, build_s,"
                " verify_s, time_s, relative_error, conditions, stored_utc, precision FROM trial"
                " WHERE id = ?")
X(SAMPLES_DELETE, "DELETE FROM sample WHERE trial = ?")
X(CHOICES_DELETE, "DELETE FROM choice WHERE trial = ?")
X(TRIAL_DELETE, "DELETE FROM trial WHERE id = ?")
/* ?2: only failures. */
X(FORGET_SAMPLES, "DELETE FROM sample WHERE trial IN"
                  " (SELECT id FROM trial WHERE study = ?1 AND (?2 = 0 OR status = 'failed'))")
X(FORGET_CHOICES, "DELETE FROM choice WHERE trial IN"
                  " (SELECT id FROM trial WHERE study = ?1 AND (?2 = 0 OR status = 'failed'))")
X(FORGET_TRIALS, "DELETE FROM trial WHERE study = ?1 AND (?2 = 0 OR status = 'failed')")
X(FORGET_FAILURES, "DELETE FROM failure WHERE study = ?")
X(FORGET_MODELS, "DELETE FROM model WHERE study = ?")
X(FORGET_SEARCHES, "DELETE FROM search WHERE study = ?")
X(FORGET_STUDY, "DELETE FROM study WHERE id = ?")
X(FORGET_WORKLOADS, "DELETE FROM workload WHERE id NOT IN (SELECT workload FROM study)")
X(FORGET_TARGETS, "DELETE FROM target WHERE id NOT IN (SELECT target FROM study)")
X(FAILED_COUNT, "SELECT count(*) FROM trial WHERE study = ? AND status <> 'ok'"
                " AND status = 'failed'")
X(MODEL_PUT, "INSERT INTO model (study, name, features, seed, quantile, report, trained_utc, rows)"
             " VALUES (NULL,?,1,?,?,?,?,?)"
             " ON CONFLICT (coalesce(study, 0), name) DO UPDATE SET features = 1,"
             " seed = excluded.seed, quantile = excluded.quantile, rows = excluded.rows,"
             " report = excluded.report, trained_utc = excluded.trained_utc")
X(MODEL_GET, "SELECT seed, quantile, rows FROM model WHERE coalesce(study, 0) = 0 AND name = ?")
X(INFO, "SELECT (SELECT user_version FROM pragma_user_version),"
        " (SELECT page_count FROM pragma_page_count)"
        "  * (SELECT page_size FROM pragma_page_size),"
        " (SELECT count(*) FROM study), (SELECT count(*) FROM workload),"
        " (SELECT count(*) FROM target), (SELECT count(*) FROM trial),"
        " (SELECT count(*) FROM sample), (SELECT count(*) FROM model),"
        " (SELECT count(*) FROM search)")
