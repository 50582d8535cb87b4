/* The batch script of a sweep: docs/cluster.md says why each line is as it is. */
#include "cmd/sweep_int.h"

enum { ARRAY_MAX = 1001 }; /* Slurm's MaxArraySize, unless a site sets it */

/* What says which rows are meant, also on a host without a GPU. */
static void add_rows(const struct options *o, option_bits more, struct buf *out)
{
    options_words(o, OPTS_ROW | more, out);
    if (o->target == NULL)
        buf_adds(out, " --target cuda");
}

static void add_script(const struct options *o, int rows, bool gpu, struct buf *out)
{
    SCOPED_BUF table = BUF_INIT, dir = BUF_INIT, file = BUF_INIT, meant = BUF_INIT,
               collect = BUF_INIT;
    buf_add_path(&table, o->operands[2]);
    buf_add_path(&dir, o->save != NULL ? o->save : "sweep");
    buf_add_path(&file,
                 o->output != NULL && strcmp(o->output, "-") != 0 ? o->output : "sweep.sbatch");
    add_rows(o, 0, &meant);
    SCOPED char *command =
        buf_text("fuseplan sweep collect %s %s%s", table.ptr, dir.ptr, meant.ptr);
    buf_add_word(&collect, command);
    buf_addf(out,
             "#!/bin/bash\n"
             "# Tunes the %d workloads of %s in %d shards%s:\n"
             "#     job=$(sbatch --parsable %s)\n"
             "#     sbatch --dependency=afterany:$job --wrap %s\n"
             "# collect names the shards that are missing, for example: sbatch --array=1,3 %s\n"
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
             rows, table.ptr, o->shards, gpu ? ", a GPU each" : "", file.ptr, collect.ptr, file.ptr,
             o->shards - 1,
             gpu ? "#SBATCH --gres=gpu:1\n#SBATCH --cpus-per-task=8\n" : "#SBATCH --exclusive\n",
             dir.ptr, table.ptr, o->shards, dir.ptr);
    add_rows(o, OPT(JOBS), out);
    buf_adds(out,
             "\ncode=$?\n\n"
             "# 130: stopped before its end, and all is saved.  The next run goes on from there.\n"
             "if [ $code = 130 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt 20 ]; then\n"
             "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"
             "fi\n"
             "exit $code\n");
}

int sweep_script_run(const struct options *o, struct status *st)
{
    SCOPED_BY(table_release) struct table table = {.count = 0};
    bool gpu = false;
    SCOPED_BUF text = BUF_INIT;
    if (strcmp(o->operands[1], "slurm") != 0)
        return status_set(st, STATUS_USAGE, "unknown scheduler '%s'; expected slurm",
                          o->operands[1]);
    if (o->shards > ARRAY_MAX)
        note(o,
             "--shards: Slurm refuses arrays of %d tasks unless the site's MaxArraySize is larger",
             o->shards);
    const char *usual = o->target != NULL ? o->target : "cuda";
    if (table_read(o, o->operands[2], usual, &table, st) != 0)
        return -1;
    for (int i = 0; i < table.count; i++) {
        struct target_name target;
        if (target_parse(table.rows[i].o.target, &target, st) != 0)
            return -1;
        gpu = gpu || target.kind == TARGET_CUDA;
    }
    if (file_make_dirs(o->save != NULL ? o->save : "sweep", st) != 0) /* the log lies there */
        return -1;
    add_script(o, table.count, gpu, &text);
    progress_hide();
    return file_write(o->output != NULL ? o->output : "-", text.ptr, text.len, st);
}
