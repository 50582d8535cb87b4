/* What the files of `generate` share. */
#ifndef FUSEPLAN_CMD_GENERATE_INT_H
#define FUSEPLAN_CMD_GENERATE_INT_H

#include "cmd/cmd.h"

/* ---- generate_schedules.c: what the segments run with ---------------------------------------- */

/* All zero: empty. */
struct schedules {
    enum target_kind target;
    struct candidate candidate;
    int measured;                /* of its choices: they have a stored time */
    char *device;                /* that was measured, owned; null where nothing is stored */
    bool elsewhere;              /* that is another device than the one here */
    int device_arch;             /* its architecture; 0: it is no GPU */
    bool replaced[OP_COUNT];     /* a faster choice is known that not every architecture runs */
    char *failed[OP_COUNT];      /* why the choice failed there, owned; null where it did not */
    json_t *resources[OP_COUNT]; /* of the compiled choice, owned; null where they are not stored */
};

/* The fastest choices that the database knows and all of spec's architectures run, else the
 * defaults.  Makes no database. */
int schedules_choose(const struct options *o, struct target_name target,
                     const struct standalone_spec *spec, struct plan p, struct schedules *out,
                     struct status *st);
void schedules_release(struct schedules *s);

/* Which it took. */
void schedules_note(const struct options *o, const struct standalone_spec *spec,
                    const struct schedules *s);

/* ---- generate_manifest.c: what was generated, for programs ----------------------------------- */

#define MANIFEST_GENERATOR "fuseplan"

json_t *manifest_json(const struct standalone_spec *spec, const struct schedules *schedules,
                      const struct standalone *p);

#endif
