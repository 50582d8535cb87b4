#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

/* What a function of a table adds, blanks between; empty where there is none.  The caller frees. */
static char *text_of(void (*words)(struct buf *words))
{
    struct buf text;
    buf_init(&text);
    if (words != NULL)
        words(&text);
    return buf_detach(&text);
}

static bool takes_path(const struct option_info *info)
{
    static const char *const paths[] = {"FILE", "DIR", "PATH"};
    for (size_t i = 0; i < ARRAY_LEN(paths) && info->argument != NULL; i++)
        if (strcmp(info->argument, paths[i]) == 0)
            return true;
    return false;
}

/* All commands' names, blanks between. */
static void list_commands(struct buf *out)
{
    for (int i = 0; i < command_count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
}

/* Text within single quotes; `also` are characters that a backslash protects there. */
static void print_quoted(const char *text, const char *also)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(also, *text) != NULL ? "\\" : "", *text);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void print_bash_argument(const struct option_info *info)
{
    if (info->argument == NULL)
        return;
    char *words = text_of(info->words);
    printf("    ");
    if (info->letter != '\0')
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
        char *words = text_of(commands[i]->words);
        printf("    %s) words=\"%s", commands[i]->name, words);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((commands[i]->options >> id & 1) != 0)
                printf(" --%s", option_info((enum option_id)id)->name);
        puts("\" ;;");
        free(words);
    }
    char *names = text_of(list_commands);
    printf("    help) words=\"%s\" ;;\n"
           "    esac\n"
           "    [ \"$COMP_CWORD\" -gt 1 ] || words=\"help %s\"\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -F _fuseplan fuseplan\n",
           names, names);
    free(names);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void print_zsh_option(const struct option_info *info)
{
    char *words = text_of(info->words);
    printf(" \\\n        ");
    if (info->letter != '\0')
        printf("{-%c,--%s}'[", info->letter, info->name);
    else
        printf("'--%s[", info->name);
    print_quoted(info->help, "[]:\\");
    putchar(']');
    if (takes_path(info))
        printf(":%s:_files", info->argument);
    else if (words[0] != '\0')
        printf(":%s:(%s)", info->argument, words);
    else if (info->argument != NULL)
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
        char *words = text_of(commands[i]->words);
        printf("    %s)\n        _arguments -s", commands[i]->name);
        if (words[0] != '\0')
            printf(" '2:operand:(%s)'", words);
        free(words);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((commands[i]->options >> id & 1) != 0)
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
    char *words = text_of(info->words);
    printf("complete -c fuseplan -n '__fish_seen_subcommand_from %s' -l %s", c->name, info->name);
    if (info->letter != '\0')
        printf(" -s %c", info->letter);
    if (takes_path(info))
        printf(" -r -F");
    else if (info->argument != NULL)
        printf(" -x");
    if (words[0] != '\0')
        printf(" -a '%s'", words);
    printf(" -d '");
    for (const char *text = info->help; *text != '\0'; text++)
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
        char *words = text_of(c->words);
        if (words[0] != '\0')
            printf("complete -c fuseplan -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name,
                   words);
        free(words);
        for (int id = 0; id < OPTION_COUNT; id++)
            if ((c->options >> id & 1) != 0)
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

static void list_shells(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", shells[i].name);
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
