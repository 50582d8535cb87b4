#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

static bool takes_path(const struct option_info *info)
{
    static const char *const paths[] = {"FILE", "DIR", "PATH"};
    for (size_t i = 0; i < ARRAY_LEN(paths) && info->argument != NULL; i++)
        if (strcmp(info->argument, paths[i]) == 0)
            return true;
    return false;
}

/* Text within single quotes; `also` are characters that a backslash protects there. */
static void add_quoted(const char *text, const char *also, struct buf *out)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addf(out, "%s%c", strchr(also, *text) != NULL ? "\\" : "", *text);
}

/* The words of an option or of a command's operand between two texts; nothing where it has none. */
static void add_words(const char *before, void (*words)(struct buf *words), const char *after,
                      struct buf *out)
{
    if (words == NULL)
        return;
    buf_adds(out, before);
    words(out);
    buf_adds(out, after);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void add_bash_argument(const struct option_info *info, struct buf *out)
{
    if (info->argument == NULL)
        return;
    buf_adds(out, "    ");
    if (info->letter != '\0')
        buf_addf(out, "-%c | ", info->letter);
    buf_addf(out, "--%s) COMPREPLY=($(compgen -%s", info->name, takes_path(info) ? "f" : "W \"");
    add_words("", info->words, "", out);
    buf_addf(out, "%s -- \"$word\")); return ;;\n", takes_path(info) ? "" : "\"");
}

static void add_bash(struct buf *out)
{
    buf_adds(out, "# fuseplan completion for bash: source <(fuseplan completion bash)\n"
                  "_fuseplan()\n"
                  "{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                  "    case ${COMP_WORDS[COMP_CWORD - 1]} in\n");
    for (int id = 0; id < OPTION_COUNT; id++)
        add_bash_argument(option_info((enum option_id)id), out);
    buf_adds(out, "    esac\n"
                  "    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < command_count; i++) {
        buf_addf(out, "    %s) words=\"", commands[i]->name);
        add_words("", commands[i]->words, "", out);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((commands[i]->options >> id & 1) != 0)
                buf_addf(out, " --%s", option_info((enum option_id)id)->name);
        buf_adds(out, "\" ;;\n");
    }
    add_words("    help) words=\"", words_commands, "\" ;;\n    esac\n", out);
    add_words("    [ \"$COMP_CWORD\" -gt 1 ] || words=\"help ", words_commands, "\"\n", out);
    buf_adds(out, "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                  "}\n"
                  "complete -F _fuseplan fuseplan\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void add_zsh_option(const struct option_info *info, struct buf *out)
{
    buf_adds(out, " \\\n        ");
    if (info->letter != '\0')
        buf_addf(out, "{-%c,--%s}'[", info->letter, info->name);
    else
        buf_addf(out, "'--%s[", info->name);
    add_quoted(info->help, "[]:\\", out);
    buf_adds(out, "]");
    if (info->argument != NULL)
        buf_addf(out, ":%s:%s", info->argument,
                 takes_path(info)      ? "_files"
                 : info->words == NULL ? " "
                                       : "");
    add_words("(", info->words, ")", out);
    buf_adds(out, "'");
}

static void add_zsh(struct buf *out)
{
    buf_adds(
        out,
        "#compdef fuseplan\n"
        "# fuseplan completion for zsh: fuseplan completion zsh > DIR/_fuseplan, DIR in $fpath\n"
        "_fuseplan()\n"
        "{\n"
        "    local -a names\n"
        "    names=(\n");
    for (int i = 0; i < command_count; i++) {
        buf_addf(out, "        '%s:", commands[i]->name);
        add_quoted(commands[i]->summary, ":\\", out);
        buf_adds(out, "'\n");
    }
    buf_adds(out, "    )\n"
                  "    if ((CURRENT == 2)); then\n"
                  "        _describe command names\n"
                  "        return\n"
                  "    fi\n"
                  "    case $words[2] in\n");
    for (int i = 0; i < command_count; i++) {
        buf_addf(out, "    %s)\n        _arguments -s", commands[i]->name);
        add_words(" '2:operand:(", commands[i]->words, ")'", out);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((commands[i]->options >> id & 1) != 0)
                add_zsh_option(option_info((enum option_id)id), out);
        buf_adds(out, "\n        ;;\n");
    }
    buf_adds(out, "    esac\n"
                  "}\n"
                  "compdef _fuseplan fuseplan\n"
                  "[ \"$funcstack[1]\" != _fuseplan ] || _fuseplan # loaded by the first use\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void add_fish_option(const char *command, const struct option_info *info, struct buf *out)
{
    buf_addf(out, "complete -c fuseplan -n '__fish_seen_subcommand_from %s' -l %s", command,
             info->name);
    if (info->letter != '\0')
        buf_addf(out, " -s %c", info->letter);
    if (info->argument != NULL)
        buf_adds(out, takes_path(info) ? " -r -F" : " -x");
    add_words(" -a '", info->words, "'", out);
    buf_adds(out, " -d '");
    for (const char *text = info->help; *text != '\0'; text++)
        buf_addf(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    buf_adds(out, "'\n");
}

static void add_fish(struct buf *out)
{
    buf_adds(out, "# fuseplan completion for fish: fuseplan completion fish | source\n"
                  "complete -c fuseplan -f\n");
    for (int i = 0; i < command_count; i++) {
        const char *name = commands[i]->name;
        buf_addf(out, "complete -c fuseplan -n __fish_use_subcommand -a %s -d '%s'\n", name,
                 commands[i]->summary);
        if (commands[i]->words != NULL)
            buf_addf(out, "complete -c fuseplan -n '__fish_seen_subcommand_from %s'", name);
        add_words(" -a '", commands[i]->words, "'\n", out);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((commands[i]->options >> id & 1) != 0)
                add_fish_option(name, option_info((enum option_id)id), out);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*add)(struct buf *out);
} shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};

static void list_shells(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", shells[i].name);
}

static int run(const struct options *o, struct status *st)
{
    struct buf script;
    int at = words_find("shell", o->operands[0], list_shells, st);
    if (at < 0)
        return -1;
    buf_init(&script);
    shells[at].add(&script);
    fputs(script.ptr, stdout);
    buf_release(&script);
    return EXIT_SUCCESS;
}

const struct command cmd_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a completion script for a shell",
    .options = OPT(HELP),
    .examples = "source <(fuseplan completion bash)\n"
                "fuseplan completion zsh > ~/.zfunc/_fuseplan\n"
                "fuseplan completion fish | source",
    .words = list_shells,
    .run = run,
};
