#include "cmd/options_int.h"

#include <getopt.h>

/* A command's options in getopt_long's form. */
struct getopt_tables {
    struct option longs[OPTION_COUNT + 1];
    char letters[2 * OPTION_COUNT + 16];
};

/* "-:" makes getopt_long return operands as option 1 and a missing argument as ':'.  Digits are
 * letters so that parse_next() can tell the operand -1 from an unknown option. */
static void make_tables(option_bits options, struct getopt_tables *t)
{
    int n = 0;
    char *letter = t->letters + strlen(strcpy(t->letters, "-:0123456789"));
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if ((options >> id & 1) == 0)
            continue;
        int has_argument = option_needs_argument(info) ? required_argument
                           : info->argument != NULL    ? optional_argument
                                                       : no_argument;
        t->longs[n++] = (struct option){info->name, has_argument, NULL, 256 + id};
        if (info->letter == 0)
            continue;
        *letter++ = info->letter;
        if (info->argument != NULL)
            *letter++ = ':';
    }
    *letter = '\0';
    t->longs[n] = (struct option){0};
}

static int id_of_letter(int letter)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if (option_info((enum option_id)id)->letter == letter)
            return id;
    return -1;
}

/* Appends the commands that take an option: "bench, search and generate". */
static void add_takers(int id, struct buf *out)
{
    const char *names[OPTION_COUNT];
    int n = 0;
    for (int i = 0; i < command_count; i++)
        if ((commands[i]->options >> id & 1) != 0)
            names[n++] = commands[i]->name;
    words_join("", names, n, " and ", out);
}

/* The options of a command whose names begin with a text; returns their number. */
static int options_beginning(const struct command *c, const char *text,
                             const char *names[OPTION_COUNT])
{
    int n = 0;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const char *name = option_info((enum option_id)id)->name;
        if ((c->options >> id & 1) != 0 && strncmp(name, text, strlen(text)) == 0)
            names[n++] = name;
    }
    return n;
}

static int refuse_long(const struct command *c, const char *name, struct status *st)
{
    const char *names[OPTION_COUNT];
    SCOPED_BUF list = BUF_INIT;
    int id = OPTION_COUNT - 1, n = options_beginning(c, name, names);
    while (id >= 0 && strcmp(option_info((enum option_id)id)->name, name) != 0)
        id--;
    const char *nearest = nearest_word(name, names, options_beginning(c, "", names));
    if (n > 1) {
        words_join("--", names, options_beginning(c, name, names), " or ", &list);
        return status_set(st, STATUS_USAGE, "option '--%s' is ambiguous: it may be %s", name,
                          list.ptr);
    }
    if (id >= 0) {
        add_takers(id, &list);
        return status_set(st, STATUS_USAGE, "option '--%s' belongs to %s, not to %s", name,
                          list.ptr, c->name);
    }
    if (nearest != NULL)
        return status_set(st, STATUS_USAGE, "unknown option '--%s'; did you mean '--%s'?", name,
                          nearest);
    return status_set(st, STATUS_USAGE, "unknown option '--%s'; 'fuseplan %s --help all' lists all",
                      name, c->name);
}

static int refuse_letter(const struct command *c, char letter, struct status *st)
{
    int id = id_of_letter(letter);
    if (id >= 0)
        return refuse_long(c, option_info((enum option_id)id)->name, st);
    return status_set(st, STATUS_USAGE, "unknown option '-%c'; 'fuseplan %s --help all' lists all",
                      letter, c->name);
}

/* text: "--name" or "--name=argument". */
static int unknown_option(const struct command *c, const char *text, struct status *st)
{
    SCOPED char *name = mem_strdup(text + strspn(text, "-"));
    name[strcspn(name, "=")] = '\0';
    return refuse_long(c, name, st);
}

static void init(struct options *o, int argc)
{
    SCOPED_BY(workload_release) struct workload defaults;
    workload_init(&defaults);
    *o = (struct options){.heads = defaults.heads,
                          .head_size = defaults.head_size,
                          .layers = defaults.layers,
                          .eps = defaults.eps,
                          .mask = "full",
                          .baseline = BASELINE_DEFAULT,
                          .space = {0, VALUE_MAX},
                          .local_width = -1,
                          .name = "default",
                          .quantile = 0.1,
                          .seeds = 20,
                          .shards = 1,
                          .strategies = {.count = 1},
                          .operands = mem_alloc((size_t)argc + 1, sizeof(*o->operands))};
}

/* Parses the next argument; 1 at the end. */
static int parse_next(struct options *o, const struct command *c, const struct getopt_tables *t,
                      int argc, char **argv, struct status *st)
{
    int at = optind;
    int got = getopt_long(argc, argv, t->letters, t->longs, NULL);
    if (got == -1)
        return 1;
    if (got == 1) {
        o->operands[o->operand_count++] = optarg;
        return 0;
    }
    if (got >= '0' && got <= '9') { /* a negative number: skip its other digits */
        while (optind == at)
            getopt_long(argc, argv, t->letters, t->longs, NULL);
        o->operands[o->operand_count++] = argv[at];
        return 0;
    }
    if (got == ':')
        return status_set(st, STATUS_USAGE, "option '%s' needs an argument", argv[optind - 1]);
    if (got == '?' && optopt == 0)
        return unknown_option(c, argv[at], st);
    if (got == '?' && optopt >= 256)
        return status_set(st, STATUS_USAGE, "option '--%s' takes no argument",
                          option_info((enum option_id)(optopt - 256))->name);
    if (got == '?')
        return refuse_letter(c, (char)optopt, st);
    int id = got >= 256 ? got - 256 : id_of_letter(got);
    char what[64];
    snprintf(what, sizeof(what), "--%s", option_info((enum option_id)id)->name);
    o->texts[id] = optarg;
    return option_set(o, (enum option_id)id, what, optarg, st);
}

int options_parse(struct options *o, const struct command *c, int argc, char **argv, bool files,
                  struct status *st)
{
    struct getopt_tables tables;
    init(o, argc);
    make_tables(c->options, &tables);
    opterr = 0;
    optind = 1;
    int result;
    do
        result = parse_next(o, c, &tables, argc, argv, st);
    while (result == 0);
    for (int i = optind; i < argc && result > 0; i++) /* after "--" */
        o->operands[o->operand_count++] = argv[i];
    if (result > 0 && files && !options_has(o, OPT(HELP)) && settings_apply(o, c, st) != 0)
        result = -1;
    if (result > 0 && preset_apply(o, st) != 0)
        result = -1;
    if (o->model != NULL && o->weights == NULL && (c->options & OPT(WEIGHTS)) != 0)
        o->weights = o->model_weights = model_weights(o->model);
    o->batch = o->batches.items[0];
    o->seq_len = o->seq_lens.items[0];
    return result > 0 ? each_check(o, c, st) : -1;
}

void options_release(struct options *o)
{
    free(o->operands);
    free(o->model_weights);
    settings_free(o->settings);
    *o = (struct options){0};
}
