/* Shared by the files of `generate`. */
#ifndef FUSEPLAN_CMD_GENERATE_INT_H
#define FUSEPLAN_CMD_GENERATE_INT_H

#include "cmd/cmd.h"

/* ---- generate_schedules.c: the segments' choices --------------------------------------------- */

/* All zero: empty. */
struct schedules {
    enum target_kind target;
    struct candidate candidate;
    int measured;                /* how many of its choices have a stored time */
    char *device;                /* the device that was measured, owned; null: nothing is stored */
    bool elsewhere;              /* whether `device` differs from the device of this machine */
    int device_arch;             /* architecture of `device`; 0: it is no GPU */
    bool replaced[OP_COUNT];     /* a faster choice is known, but not every architecture runs it */
    char *failed[OP_COUNT];      /* why the choice failed on `device`, owned; null: it did not */
    json_t *resources[OP_COUNT]; /* stored for the choice, owned; null: nothing is stored */
};

/* Takes for each segment the fastest choice that the database knows and that every architecture of
 * spec runs, else the default choice.  Creates no database.  Release *out in any case. */
int schedules_choose(const struct options *o, struct target_name target,
                     const struct standalone_spec *spec, struct plan p, struct schedules *out,
                     struct status *st);
void schedules_release(struct schedules *s);

/* Notes which schedules were taken, replaced or failed. */
void schedules_note(const struct options *o, const struct standalone_spec *spec,
                    const struct schedules *s);

/* ---- generate_manifest.c: manifest.json ------------------------------------------------------ */

#define MANIFEST_GENERATOR "fuseplan"

json_t *manifest_json(const struct standalone_spec *spec, const struct schedules *schedules,
                      const struct standalone *p);

/* ---- generate_place.c: the directory --------------------------------------------------------- */

/* STATUS_USAGE if the directory holds what this command did not write, or what was changed since,
 * unless `force` is set.  ours: the other files in it, of an earlier output.  Release *ours in any
 * case. */
int place_check(const char *dir, bool force, struct names *ours, struct status *st);

/* Writes all files, then removes those of `ours` that have no successor. */
int place_write(const char *dir, const struct names *ours, const struct standalone *p,
                const json_t *manifest, struct status *st);

#endif
