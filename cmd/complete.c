/* --complete WORD...: what the last word of a command line can be, for the scripts
 * of completion.c. */
#include "cmd/options_int.h"
#include "cmd/plans.h"

/* A command line up to the word to be completed. */
struct line {
    const struct command *c;
    option_bits given;  /* OPT() bits */
    int operands;       /* before the word */
    bool options_ended; /* by "--" */
    int expecting;      /* the option whose argument the word is; -1: none */
    const char *part;   /* the word's part that answers begin with */
    struct buf before;  /* the word's part in front of it, which is put before each answer */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void answer(const struct line *l, const char *text, const char *description)
{
    if (strncmp(text, l->part, strlen(l->part)) == 0)
        printf("%s%s\t%s\n", l->before.ptr, text, description);
}

/* kind: ":files" or ":dirs". */
static void answer_paths(const struct line *l, const char *kind)
{
    printf("%s\t%s\t%s\n", kind, l->before.ptr, l->part);
}

static void answer_words(const struct line *l, void (*words)(struct buf *words))
{
    SCOPED_BUF text = BUF_INIT;
    char *rest;
    words(&text);
    for (char *word = strtok_r(text.ptr, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        answer(l, word, "");
}

/* ---- arguments of options -------------------------------------------------------------------- */

static void answer_argument(const struct line *l, enum option_id id)
{
    const struct option_info *info = option_info(id);
    if (info->words != NULL)
        answer_words(l, info->words);
    else if (strcmp(info->argument, "DIR") == 0)
        answer_paths(l, ":dirs");
    else if (strcmp(info->argument, "FILE") == 0 || strcmp(info->argument, "PATH") == 0)
        answer_paths(l, ":files");
}

/* ---- the line -------------------------------------------------------------------------------- */

/* The option of a command that a word names; -1: none.  *argument: what follows it within the word,
 * or null. */
static int option_of(const struct command *c, const char *word, const char **argument)
{
    size_t len = strcspn(word, "=");
    bool is_long = strncmp(word, "--", 2) == 0;
    *argument = is_long ? (word[len] == '=' ? word + len + 1 : NULL)
                        : (word[1] != '\0' && word[2] != '\0' ? word + 2 : NULL);
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        bool named =
            is_long ? strlen(info->name) == len - 2 && strncmp(info->name, word + 2, len - 2) == 0
                    : info->letter != '\0' && info->letter == word[1];
        if (named && (c->options >> id & 1) != 0)
            return id;
    }
    return -1;
}

static void take_word(struct line *l, const char *word)
{
    const char *argument;
    int id = l->expecting;
    if (id >= 0) {
        l->expecting = -1;
    } else if (!l->options_ended && strcmp(word, "--") == 0) {
        l->options_ended = true;
    } else if (!l->options_ended && word[0] == '-') {
        id = option_of(l->c, word, &argument);
        if (id < 0)
            return;
        l->given |= (option_bits)1 << id;
        if (!option_needs_argument(option_info((enum option_id)id)))
            return;
        if (argument == NULL)
            l->expecting = id;
    } else {
        l->operands++;
    }
}

static void answer_options(const struct line *l)
{
    option_bits options = l->c->options & ~l->given;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        char text[64];
        SCOPED_BUF help = BUF_INIT;
        snprintf(text, sizeof(text), "--%s", info->name);
        option_help(info, &help);
        if ((options >> id & 1) != 0)
            answer(l, text, help.ptr);
    }
}

static void answer_operand(const struct line *l)
{
    int most = l->c->operands[0] != '\0';
    for (const char *at = l->c->operands; (at = strchr(at, ' ')) != NULL; at++)
        most++;
    if (l->operands >= most && strstr(l->c->operands, "...") == NULL)
        return;
    if (l->c->words != NULL && (l->operands == 0 || strncmp(l->c->operands, "ACTION", 6) != 0))
        answer_words(l, l->c->words);
    else if (strstr(l->c->operands, "FILE") != NULL)
        answer_paths(l, ":files");
}

static void answer_word(struct line *l, const char *word)
{
    const char *argument;
    l->part = word;
    if (l->expecting >= 0) {
        answer_argument(l, (enum option_id)l->expecting);
    } else if (!l->options_ended && word[0] == '-') {
        int id = option_of(l->c, word, &argument);
        if (id >= 0 && argument != NULL && option_info((enum option_id)id)->argument != NULL) {
            buf_add(&l->before, word, (size_t)(argument - word));
            l->part = argument;
            answer_argument(l, (enum option_id)id);
        } else {
            answer_options(l);
        }
    } else {
        answer_operand(l);
    }
}

static void answer_commands(const struct line *l, bool program)
{
    for (int i = 0; i < command_count; i++)
        answer(l, commands[i]->name, commands[i]->summary);
    if (!program)
        return;
    answer(l, "help", "Explain a command");
    if (l->part[0] == '-') {
        answer(l, "--help", "List the commands");
        answer(l, "--version", "Print the version");
    }
}

int complete(int argc, char **argv)
{
    struct line l = {.expecting = -1};
    buf_init(&l.before);
    l.part = argc > 0 ? argv[argc - 1] : "";
    for (int i = 0; argc > 1 && i < command_count; i++)
        if (strcmp(commands[i]->name, argv[0]) == 0)
            l.c = commands[i];
    if (argc <= 1 || (argc == 2 && strcmp(argv[0], "help") == 0)) {
        answer_commands(&l, argc <= 1);
    } else if (l.c != NULL) {
        for (int i = 1; i < argc - 1; i++)
            take_word(&l, argv[i]);
        answer_word(&l, argv[argc - 1]);
    }
    buf_release(&l.before);
    return EXIT_SUCCESS;
}
