/* Shared by `generate` and `export`. */
#pragma once

#include "cmd/cmd.h"

/* ---- generate_schedules.c: the segments' choices --------------------------------------------- */

/* All zero: empty. */
struct schedules {
    enum target_kind target;
    struct candidate candidate;
    int measured;                /* how many of its choices have a stored time */
    char *device;                /* the device that was measured, owned; null: nothing is stored */
    char *libraries;             /* that it was measured with, owned; null with `device` */
    char *pack;                  /* that all this is from, owned; null: the database */
    bool elsewhere;              /* whether `device` differs from the device of this machine */
    int device_arch;             /* architecture of `device`; 0: it is no GPU */
    bool replaced[OP_COUNT];     /* a faster choice is known, but not every architecture runs it */
    char *failed[OP_COUNT];      /* why the choice failed on `device`, owned; null: it did not */
    json_t *resources[OP_COUNT]; /* stored for the choice, owned; null: nothing is stored */
};

struct choosing;
struct chosen;

/* Takes for each segment of a workload's plan the fastest choice that the database knows and that
 * every architecture runs, else the default choice.  Creates no database. */
int schedules_choose(const struct options *o, const struct choosing *c, struct chosen *part,
                     struct status *st);
void schedules_release(struct schedules *s);

/* Notes which schedules were taken, replaced or failed. */
void schedules_note(const struct options *o, const struct choosing *c, const struct chosen *part);

/* ---- generate_choosing.c: what is generated -------------------------------------------------- */

/* One workload. */
struct chosen {
    struct workload workload; /* as tuned; its mask is built */
    struct workload full;     /* the same without lengths; borrows what does not differ */
    bool opened;              /* both are */
    struct plan plan;
    bool padded;      /* the plan is faster with rows of padding */
    double median_ms; /* stored of the best plan known; NaN of others */
    struct schedules schedules;
};

struct choosing {
    struct target_name target;
    struct build_target build; /* its arch is arch_common() of `archs` */
    struct arch_list archs;    /* of a GPU */
    const char *processors;    /* of a CPU */
    struct chosen *parts;      /* (count), owned: plans of fewest tokens first */
    int count;
    struct standalone_plan *plans;   /* (count), owned: choosing_spec()'s */
    struct calibration calibration;  /* of a file, or of a program's inputs */
    struct standalone_scales scales; /* of it; without layers if there is none */
};

/* STATUS_USAGE if --precision lacks --calibration, or the latter the former. */
int choosing_check_precision(const struct options *o, struct status *st);

/* Reads the plan and the workload of each size that the options name.  Close *out in any case. */
int choosing_open(const struct options *o, struct choosing *out, struct status *st);

/* Chooses architectures and schedules. */
int choosing_schedules(const struct options *o, struct choosing *c, struct status *st);

/* Finds the scales of a program's inputs: seconds for each 1000 tokens. */
void choosing_draw_scales(const struct drawing *from, struct choosing *c);

/* The same for standalone_emit(); borrows from *c.  inputs: of a program; null: a library. */
struct standalone_spec choosing_spec(struct choosing *c, const char *name,
                                     const struct drawing *inputs);
void choosing_note(const struct options *o, const struct choosing *c);
void choosing_close(struct choosing *c);

/* ---- generate_manifest.c: manifest.json ------------------------------------------------------ */

#define MANIFEST_GENERATOR "fuseplan"

json_t *manifest_of_program(const struct choosing *c, const struct standalone *p);
json_t *manifest_of_library(const struct choosing *c, const char *name, const struct standalone *p);

/* ---- generate_place.c: the directory --------------------------------------------------------- */

/* --output without trailing slashes, which the caller frees; null with STATUS_USAGE if it is not
 * given. */
char *place_directory(const struct options *o, struct status *st);

/* STATUS_USAGE if the directory holds what this command did not write, or what was changed since,
 * unless `force` is set.  ours: the other files in it, of an earlier output.  Release *ours in any
 * case. */
int place_check(const char *dir, bool force, struct names *ours, struct status *st);

/* What has to succeed before written files get into their directory.  at: the staging directory
 * that has them; what else it has then gets there, too. */
struct finish {
    int (*run)(void *ctx, const char *at, struct status *st);
    void *ctx;
};

/* Writes all files, then removes the files of `ours` that have no successor.  finish: may be null;
 * it runs with the signals that the caller had. */
int place_write(const char *dir, const struct names *ours, const struct standalone *p,
                const json_t *manifest, const struct finish *finish, struct status *st);

/* ---- generate_write.c ------------------------------------------------------------------------ */

/* Writes what the options name into a directory and notes what was taken and, without `finish`, how
 * to build it.  inputs: a program's; null: a library, whose functions begin with `name`. */
int generate_write(const struct options *o, const char *dir, const char *name,
                   const struct drawing *inputs, const struct finish *finish, struct status *st);

/* ---- library.c: an exported library, built and run as its user does -------------------------- */

/* STATUS_USAGE unless C functions can have names that begin so. */
int library_check_name(const char *name, struct status *st);

/* Runs make in its directory, which prints what it says.  STATUS_INTERRUPTED after session_stop. */
int library_build(const char *dir, struct status *st);

/* What its example is given. */
struct library_example {
    const char *weights, *prefix; /* a file; of the names in it, or null */
    const char *input, *output;   /* files of x and y */
    const char *gpu;              /* the identifier of the one that it sees; null: it sees all */
};

/* Runs the example, which says on standard error why it fails. */
int library_run(const char *dir, const struct library_example *e, struct status *st);
