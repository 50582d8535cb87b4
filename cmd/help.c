#include "cmd/options_int.h"

/* What --help and the manual pages say of all commands. */
static const struct help_exit {
    int status;
    unsigned commands; /* EXITS_ bits of the commands that exit so; 0: all do */
    const char *means;
} exits[] = {
    {0, 0, "done"},
    {1, 0, "failed: something is missing, cannot be read or written, or went wrong"},
    {2, 0, "the command line or a file that it names is wrong; nothing was done"},
    {EXIT_NO_RESULT, EXITS_NO_RESULT, "no valid result: nothing is known, or a plan did not run"},
    {EXIT_REGRESSION, EXITS_REGRESSION, "a plan is slower than it was"},
    {EXIT_INTERRUPTED, EXITS_INTERRUPTED, "interrupted; a search has stored all that it measured"},
};

static const struct help_variable {
    const char *name;
    option_bits options; /* a command that takes one of the options reads the variable */
    const char *means;
} variables[] = {
    {"FUSEPLAN_DB", OPT(DB), "the database, unless --db names one"},
    {"FUSEPLAN_WISDOM", OPT(DB), "the directory of packs of plans (those of the installation)"},
    {"FUSEPLAN_CONFIG", OPT(DB),
     "off: no fuseplan.conf is read; places: only what it says of places"},
    {"FUSEPLAN_CACHE", OPT(COMPILER), "the directory of compiled segments"},
    {"FUSEPLAN_CACHE_MAX_BYTES", OPT(COMPILER), "how large that directory may grow (2 GiB)"},
    {"FUSEPLAN_LOCK_DIR", OPT(COMPILER), "the directory of the devices' locks (/tmp)"},
    {"FUSEPLAN_SANDBOX", OPT(COMPILER), "off: candidates on a CPU may do what you may"},
    {"FUSEPLAN_PASS", OPT(COMPILER), "names of variables that compilers and workers get too"},
    {"FUSEPLAN_CC, CC", OPT(COMPILER), "the compiler of emitted C, with arguments if need be (cc)"},
    {"CUDA_HOME, CUDA_PATH", OPT(COMPILER), "the CUDA toolkit (/usr/local/cuda)"},
};

/* Appends "fuseplan search -b N -s N [OPTION...]". */
static void add_usage(const struct command *c, struct buf *out)
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

/* Appends "-b, --batch N", or with four blanks in the place of a letter. */
static void add_option(const struct option_info *info, struct buf *out)
{
    if (info->letter != '\0')
        buf_addf(out, "-%c, ", info->letter);
    else
        buf_adds(out, "    ");
    buf_addf(out, "--%s%s%s", info->name, option_needs_argument(info) ? " " : "",
             info->argument != NULL ? info->argument : "");
}

/* Appends an option's text and whether the command requires it. */
static void add_option_text(const struct command *c, int id, struct buf *out)
{
    bool list = c->each && (id == OPTION_BATCH || id == OPTION_SEQ_LEN);
    option_help(option_info((enum option_id)id), out);
    buf_addf(out, "%s%s", list ? "; 1,2,4 means each of them" : "",
             (c->required >> id & 1) != 0 ? " (required)" : "");
}

static void print_row(FILE *out, const char *left, const char *text)
{
    enum { LEFT = 26 };
    if (strlen(left) > LEFT)
        fprintf(out, "  %s\n  %*s %s\n", left, LEFT, "", text);
    else
        fprintf(out, "  %-*s %s\n", LEFT, left, text);
}

static void print_exits(FILE *out, const struct command *c)
{
    fputs("\nexit status:\n", out);
    for (size_t i = 0; i < ARRAY_LEN(exits); i++) {
        char status[16];
        snprintf(status, sizeof(status), "%d", exits[i].status);
        if (exits[i].commands == 0 || (c->exits & exits[i].commands) != 0)
            print_row(out, status, exits[i].means);
    }
}

static void print_variables(FILE *out, const struct command *c)
{
    int count = 0;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        if ((c->options & variables[i].options) == 0)
            continue;
        fputs(count++ == 0 ? "\nenvironment:\n" : "", out);
        print_row(out, variables[i].name, variables[i].means);
    }
}

void help_program(FILE *out)
{
    fputs("usage: fuseplan COMMAND [OPTION...]\n\n"
          "Finds, verifies and explains the fastest fusion plan of an encoder's layer.\n\n",
          out);
#define X(name) DAILY_##name,
    enum { COMMANDS_DAILY(X) DAILY_COUNT };
#undef X
    for (int i = 0; i < command_count; i++)
        fprintf(out, "%s  %-12s %s\n", i == DAILY_COUNT ? "\nfor research:\n" : "",
                commands[i]->name, commands[i]->summary);
    fputs(
        "\n'fuseplan COMMAND --help' explains a command; 'fuseplan --version' prints the version.\n"
        "A file fuseplan.conf sets options for a directory or for you: 'fuseplan config --help'.\n",
        out);
}

/* Indents each line. */
static void print_lines(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        fprintf(out, "  %.*s\n", (int)len, text);
        text += len + (text[len] == '\n');
    }
}

/* Options of workloads that --help leaves out and `--help all` has. */
static const option_bits rare =
    OPT(HEADS) | OPT(HEAD_SIZE) | OPT(HIDDEN) | OPT(LAYERS) | OPT(FFN) | OPT(EPS) | OPT(NORM) |
    OPT(NORM_KIND) | OPT(ACTIVATION) | OPT(GATE) | OPT(ROPE) | OPT(SCORE_BIAS) | OPT(LOCAL_MASK) |
    OPT(LOCAL_ROPE) | OPT(GLOBAL_EVERY) | OPT(AVG_SEQ_LEN) | OPT(SEED) | OPT(INIT) | OPT(PREFIX) |
    OPT(PADDED) | OPT(SPACE) | OPT(RETRY_FAILED) | OPT(RIGOR) | OPT(STRATEGY) | OPT(QUANTILE) |
    OPT(COMPILER) | OPT(JOBS) | OPT(EVENTS) | OPT(FORCE);

static void print_options(FILE *out, const struct command *c, option_bits shown)
{
    SCOPED_BUF left = BUF_INIT, text = BUF_INIT;
    fputs("\noptions:\n", out);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((shown >> id & 1) == 0)
            continue;
        buf_reset(&left);
        buf_reset(&text);
        add_option(option_info((enum option_id)id), &left);
        add_option_text(c, id, &text);
        print_row(out, left.ptr, text.ptr);
    }
}

void help_command(const struct command *c, bool all, FILE *out)
{
    SCOPED_BUF usage = BUF_INIT, more = BUF_INIT;
    bool sizes = (c->options & OPT(HEADS)) != 0 && c != &cmd_config, few = !all && sizes;
    add_usage(c, &usage);
    fprintf(out, "usage: %s\n\n%s.\n", usage.ptr, c->summary);
    if (c->about != NULL)
        fprintf(out, "\n%s\n", c->about);
    if (c->more != NULL && (!few || (c->required & OPT(BATCH)) == 0))
        c->more(&more);
    fprintf(out, "%s%s", more.len > 0 ? "\n" : "", more.ptr);
    print_options(out, c, few ? c->options & ~rare : c->options);
    fputs("\nexamples:\n", out);
    print_lines(out, c->examples);
    print_exits(out, c);
    if (few)
        fprintf(out,
                "\n'fuseplan %s --help all' has the sizes and functions of layers, options for "
                "research\nand the environment.\n",
                c->name);
    else
        print_variables(out, c);
}
