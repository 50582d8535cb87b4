#include "cmd/help_int.h"

const struct help_exit help_exits[] = {
    {0, 0, "done"},
    {1, 0, "failed: something is missing, cannot be read or written, or went wrong"},
    {2, 0, "the command line or a file that it names is wrong; nothing was done"},
    {EXIT_NO_RESULT, EXITS_NO_RESULT, "no valid result: nothing is known, or a plan did not run"},
    {EXIT_REGRESSION, EXITS_REGRESSION, "a plan is slower than it was"},
    {EXIT_INTERRUPTED, EXITS_INTERRUPTED, "interrupted; a search has stored all that it measured"},
};
const int help_exit_count = ARRAY_LEN(help_exits);

const struct help_variable help_variables[] = {
    {"FUSEPLAN_DB", OPT(DB), "the database, unless --db names one"},
    {"FUSEPLAN_SYSTEM_DB", OPT(DB), "read beside the user's database, but not by report and train"},
    {"FUSEPLAN_CACHE", OPT(COMPILER), "the directory of compiled segments"},
    {"FUSEPLAN_CACHE_MAX_BYTES", OPT(COMPILER), "how large that directory may grow (2 GiB)"},
    {"FUSEPLAN_LOCK_DIR", OPT(COMPILER), "the directory of the devices' locks (/tmp)"},
    {"FUSEPLAN_SANDBOX", OPT(COMPILER), "off: candidates on a CPU may do what you may"},
    {"FUSEPLAN_PASS", OPT(COMPILER), "names of variables that compilers and workers get too"},
    {"FUSEPLAN_CC, CC", OPT(COMPILER), "the compiler of emitted C, with arguments if need be (cc)"},
    {"CUDA_HOME, CUDA_PATH", OPT(COMPILER), "the CUDA toolkit (/usr/local/cuda)"},
};
const int help_variable_count = ARRAY_LEN(help_variables);

bool help_exit_applies(const struct help_exit *e, const struct command *c)
{
    return e->commands == 0 || c == NULL || (c->exits & e->commands) != 0;
}

bool help_variable_applies(const struct help_variable *v, const struct command *c)
{
    return c == NULL || (c->options & v->options) != 0;
}

void help_usage(const struct command *c, struct buf *out)
{
    buf_addf(out, "fuseplan %s%s%s", c->name, c->operands[0] != '\0' ? " " : "", c->operands);
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if ((c->required >> id & 1) == 0)
            continue;
        if (info->letter != '\0')
            buf_addf(out, " -%c %s", info->letter, info->argument);
        else
            buf_addf(out, " --%s %s", info->name, info->argument);
    }
    buf_adds(out, " [OPTION...]");
}

void help_option(const struct option_info *info, struct buf *out)
{
    if (info->letter != '\0')
        buf_addf(out, "-%c, ", info->letter);
    else
        buf_adds(out, "    ");
    buf_addf(out, "--%s%s%s", info->name, info->argument != NULL ? " " : "",
             info->argument != NULL ? info->argument : "");
}

void help_option_text(const struct command *c, int id, struct buf *out)
{
    bool list = c->each && (id == OPTION_BATCH || id == OPTION_SEQ_LEN);
    buf_addf(out, "%s%s%s", option_info((enum option_id)id)->help,
             list ? "; 1,2,4 means each of them" : "",
             (c->required >> id & 1) != 0 ? " (required)" : "");
}
