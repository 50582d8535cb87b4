#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

/* What may follow an option, blanks between; empty for numbers and paths.  The caller frees. */
static char *words_of(const struct option_info *info)
{
    struct buf words;
    buf_init(&words);
    if (info->words)
        info->words(&words);
    return buf_detach(&words);
}

static bool takes_path(const struct option_info *info)
{
    return info->argument && (!strcmp(info->argument, "FILE") || !strcmp(info->argument, "DIR"));
}

/* Text within single quotes; `also` are characters that a backslash protects there. */
static void print_quoted(const char *text, const char *also)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(also, *text) ? "\\" : "", *text);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void print_bash_argument(const struct option_info *info)
{
    char *words = words_of(info);
    if (!info->argument) {
        free(words);
        return;
    }
    printf("    ");
    if (info->letter)
        printf("-%c | ", info->letter);
    if (takes_path(info))
        printf("--%s) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", info->name);
    else
        printf("--%s) COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n", info->name,
               words);
    free(words);
}

static void print_bash(void)
{
    puts("# fuseplan completion for bash: source <(fuseplan completion bash)\n"
         "_fuseplan()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "    case ${COMP_WORDS[COMP_CWORD - 1]} in");
    for (int id = 0; id < OPTION_COUNT; id++)
        print_bash_argument(option_info((enum option_id)id));
    puts("    esac\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < command_count; i++) {
        printf("    %s) words=\"%s", commands[i]->name,
               commands[i]->words ? commands[i]->words : "");
        for (int id = 0; id < OPTION_COUNT; id++)
            if (commands[i]->options >> id & 1)
                printf(" --%s", option_info((enum option_id)id)->name);
        puts("\" ;;");
    }
    printf("    esac\n    [ \"$COMP_CWORD\" -gt 1 ] || words=\"help");
    for (int i = 0; i < command_count; i++)
        printf(" %s", commands[i]->name);
    puts("\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -F _fuseplan fuseplan");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void print_zsh_option(const struct option_info *info)
{
    char *words = words_of(info);
    printf(" \\\n        ");
    if (info->letter)
        printf("{-%c,--%s}'[", info->letter, info->name);
    else
        printf("'--%s[", info->name);
    print_quoted(info->help, "[]:\\");
    putchar(']');
    if (takes_path(info))
        printf(":%s:_files", info->argument);
    else if (words[0])
        printf(":%s:(%s)", info->argument, words);
    else if (info->argument)
        printf(":%s: ", info->argument);
    putchar('\'');
    free(words);
}

static void print_zsh(void)
{
    puts("#compdef fuseplan\n"
         "# fuseplan completion for zsh: fuseplan completion zsh > DIR/_fuseplan, DIR in $fpath\n"
         "_fuseplan()\n"
         "{\n"
         "    local -a names\n"
         "    names=(");
    for (int i = 0; i < command_count; i++) {
        printf("        '%s:", commands[i]->name);
        print_quoted(commands[i]->summary, ":\\");
        puts("'");
    }
    puts("    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command names\n"
         "        return\n"
         "    fi\n"
         "    case $words[2] in");
    for (int i = 0; i < command_count; i++) {
        printf("    %s)\n        _arguments -s", commands[i]->name);
        if (commands[i]->words)
            printf(" '2:action:(%s)'", commands[i]->words);
        for (int id = 0; id < OPTION_COUNT; id++)
            if (commands[i]->options >> id & 1)
                print_zsh_option(option_info((enum option_id)id));
        puts("\n        ;;");
    }
    puts("    esac\n"
         "}\n"
         "compdef _fuseplan fuseplan\n"
         "[ \"$funcstack[1]\" != _fuseplan ] || _fuseplan # loaded by the first use");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void print_fish_option(const struct command *c, const struct option_info *info)
{
    char *words = words_of(info);
    printf("complete -c fuseplan -n '__fish_seen_subcommand_from %s' -l %s", c->name, info->name);
    if (info->letter)
        printf(" -s %c", info->letter);
    if (takes_path(info))
        printf(" -r -F");
    else if (info->argument)
        printf(" -x");
    if (words[0])
        printf(" -a '%s'", words);
    printf(" -d '");
    for (const char *text = info->help; *text; text++)
        printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    puts("'");
    free(words);
}

static void print_fish(void)
{
    puts("# fuseplan completion for fish: fuseplan completion fish | source\n"
         "complete -c fuseplan -f");
    for (int i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        printf("complete -c fuseplan -n __fish_use_subcommand -a %s -d '%s'\n", c->name,
               c->summary);
        if (c->words)
            printf("complete -c fuseplan -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name,
                   c->words);
        for (int id = 0; id < OPTION_COUNT; id++)
            if (c->options >> id & 1)
                print_fish_option(c, option_info((enum option_id)id));
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static int run(const struct options *o, struct status *st)
{
    for (size_t i = 0; i < ARRAY_LEN(shells) && o->operand_count == 1; i++)
        if (strcmp(o->operands[0], shells[i].name) == 0) {
            shells[i].print();
            return EXIT_SUCCESS;
        }
    if (o->operand_count == 1)
        return status_set(st, STATUS_USAGE, "unknown shell '%s'; give bash, zsh or fish",
                          o->operands[0]);
    return status_set(st, STATUS_USAGE, "%d shells given; give bash, zsh or fish",
                      o->operand_count);
}

const struct command cmd_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a completion script for a shell",
    .options = OPT(HELP),
    .examples = "source <(fuseplan completion bash)\n"
                "fuseplan completion zsh > ~/.zfunc/_fuseplan\n"
                "fuseplan completion fish | source",
    .words = "bash zsh fish",
    .run = run,
};
