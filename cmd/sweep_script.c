/* The batch script of a sweep: docs/cluster.md says why each line is as it is. */
#include "cmd/sweep_int.h"

#include <string.h>

enum { ARRAY_MAX = 1001 }; /* Slurm's MaxArraySize, unless a site sets it */

static void add_script(const struct options *o, int rows, bool gpu, struct buf *out)
{
    const char *save = o->save != NULL ? o->save : "sweep";
    struct buf table, dir;
    buf_init(&table);
    buf_init(&dir);
    buf_add_path(&table, o->operands[2]);
    buf_add_path(&dir, save);
    buf_addf(out,
             "#!/bin/bash\n"
             "# Tunes the %d workloads of %s in %d shards%s:\n"
             "#     job=$(sbatch --parsable sweep.sbatch)\n"
             "#     sbatch --dependency=afterany:$job --wrap 'fuseplan sweep collect %s %s'\n"
             "# collect names the shards that are missing, for example: sbatch --array=1,3 "
             "sweep.sbatch\n"
             "#SBATCH --job-name=fuseplan-sweep\n"
             "#SBATCH --array=0-%d\n"
             "%s"
             "#SBATCH --time=01:00:00\n"
             "#SBATCH --signal=TERM@60\n"
             "#SBATCH --requeue\n"
             "#SBATCH --open-mode=append\n"
             "#SBATCH --output=%s/log.%%a\n\n"
             "# compiled kernels: on a disk of the node, where its tasks share them\n"
             "export FUSEPLAN_CACHE=${TMPDIR:-/tmp}/fuseplan-$(id -u)\n\n"
             "srun --ntasks=1 --cpus-per-task=\"${SLURM_CPUS_PER_TASK:-1}\" \\\n"
             "    fuseplan sweep run %s --shard \"$SLURM_ARRAY_TASK_ID/%d\" --save %s",
             rows, table.ptr, o->shards, gpu ? ", a GPU each" : "", table.ptr, dir.ptr,
             o->shards - 1,
             gpu ? "#SBATCH --gres=gpu:1\n#SBATCH --cpus-per-task=8\n" : "#SBATCH --exclusive\n",
             save, table.ptr, o->shards, dir.ptr);
    options_words(o, OPTS_ROW | OPT(JOBS), out);
    buf_adds(out,
             "\ncode=$?\n\n"
             "# 130: stopped before its end, and all is saved.  The next run goes on from there.\n"
             "if [ $code = 130 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt 20 ]; then\n"
             "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"
             "fi\n"
             "exit $code\n");
    buf_release(&table);
    buf_release(&dir);
}

int sweep_script_run(const struct options *o, struct status *st)
{
    struct table table = {.count = 0};
    struct target_name target;
    struct buf text;
    if (strcmp(o->operands[1], "slurm") != 0)
        return status_set(st, STATUS_USAGE, "unknown scheduler '%s'; expected slurm",
                          o->operands[1]);
    if (o->shards > ARRAY_MAX && !options_has(o, OPT(FORCE)))
        return status_set(st, STATUS_USAGE,
                          "--shards: %d is more than the tasks of an array usually are; give at "
                          "most %d, or add --force if MaxArraySize is larger",
                          o->shards, ARRAY_MAX);
    int result = table_read(o, o->operands[2], o->target, &table, st);
    if (result == 0)
        result = target_parse(o->target != NULL ? o->target : "cuda", &target, st);
    if (result == 0) /* the log lies there */
        result = file_make_dirs(o->save != NULL ? o->save : "sweep", st);
    buf_init(&text);
    if (result == 0) {
        add_script(o, table.count, target.kind == TARGET_CUDA, &text);
        progress_hide();
        result = file_write(o->output != NULL ? o->output : "-", text.ptr, text.len, st);
    }
    buf_release(&text);
    table_release(&table);
    return result == 0 ? EXIT_SUCCESS : -1;
}
