#include "base/threads.h"
#include "cmd/options_int.h"
#include "cmd/sweep_int.h"

#include <limits.h>

const struct command *const commands[] = {
#define X(name) &cmd_##name,
    COMMANDS(X)
#undef X
};
const int command_count = ARRAY_LEN(commands);

static const struct command *find_command(const char *name, struct status *st)
{
    int at = words_find("command", name, words_commands, st);
    return at >= 0 ? commands[at] : NULL;
}

static int check_operands(const struct command *c, const struct options *o, struct status *st)
{
    int least = 0, most = 0; /* words before the first '[', all words */
    for (const char *at = c->operands; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        most++;
        least += strchr(c->operands, '[') == NULL || at < strchr(c->operands, '[');
    }
    if (strstr(c->operands, "...") != NULL)
        most = INT_MAX;
    bool stray = o->operand_count > most;
    if (!stray && o->operand_count >= least)
        return 0;
    return status_set(st, STATUS_USAGE, "%s%s%s; expected %s, for example: %.*s",
                      stray ? "unexpected operand '" : "no operand given",
                      stray ? o->operands[most] : "", stray ? "'" : "",
                      c->operands[0] != '\0' ? c->operands : "options only",
                      (int)strcspn(c->examples, "\n"), c->examples);
}

static void note_settings(const struct options *o)
{
    SCOPED_BUF text = BUF_INIT;
    settings_text(o, &text);
    if (text.len > 0)
        note(o, "set by files: %s", text.ptr);
}

/* Runs a command and shows its progress. */
static int run_shown(const struct command *c, const struct options *o, struct status *st)
{
    if (outputs_check_apart(o, c, st) != 0 || progress_begin(o, c->name, st) != 0)
        return -1;
    if (options_has(o, OPT(VERBOSE)))
        note_settings(o);
    int code = each_run(o, c, st);
    bool failed = progress_end(code < 0 ? exit_code_of(st) : code, st) != 0;
    return failed && code == EXIT_SUCCESS ? -1 : code;
}

static int run_command(const struct command *c, int argc, char **argv, struct status *st)
{
    SCOPED_BY(options_release) struct options o;
    int code = options_parse(&o, c, argc, argv, c->options != OPT(HELP), st);
    if (code == 0 && options_has(&o, OPT(HELP)))
        help_command(c, o.operand_count == 1 && strcmp(o.operands[0], "all") == 0, stdout);
    else if (code == 0)
        code = check_operands(c, &o, st) != 0 ? -1 : run_shown(c, &o, st);
    if (code < 0) {
        if (st->code == STATUS_USAGE &&
            !options_has(&o, OPT(VERBOSE))) /* it may be about one of them */
            note_settings(&o);
        fprintf(stderr, "fuseplan %s: %s\n", c->name, st->message);
        code = exit_code_of(st);
    }
    return code;
}

static int help(int argc, char **argv, struct status *st)
{
    if (argc < 2) {
        help_program(stdout);
        return EXIT_SUCCESS;
    }
    const struct command *c = find_command(argv[1], st);
    if (c != NULL)
        help_command(c, argc > 2 && strcmp(argv[2], "all") == 0, stdout);
    return c != NULL ? EXIT_SUCCESS : -1;
}

static int run(int argc, char **argv, struct status *st)
{
    const char *name = argv[0];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("fuseplan " FUSEPLAN_VERSION FUSEPLAN_COMMIT);
        return EXIT_SUCCESS;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc, argv, st);
    if (strcmp(name, "--complete") == 0)
        return complete(argc - 1, argv + 1);
    if (strcmp(name, TURN_WORD) == 0 && argc > 1)
        return turn_inherit(st) == 0 ? run(argc - 1, argv + 1, st) : -1;
    if (name[0] == '-')
        return status_set(st, STATUS_USAGE,
                          "option '%s' in the place of the command; options come after it, and "
                          "'fuseplan --help' lists the commands",
                          name);
    const struct command *c = find_command(name, st);
    return c != NULL ? run_command(c, argc, argv, st) : -1;
}

/* Closes stdout: some failures, such as a full disk, show only when the last bytes are written. */
static int close_stdout(void)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed |= fclose(stdout) != 0;
    if (failed)
        fprintf(stderr, "fuseplan: cannot write the results: %s\n",
                errno != 0 ? strerror(errno) : "the output failed");
    return failed ? -1 : 0;
}

/* OpenMP, which XGBoost brings, reads its variables before main(), binds this process to some cores
 * as they say, and warns of values that it does not understand.  Nothing here is theirs to say, so
 * they go before any library has begun.  The sanitizers have not begun either. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void
forget_threads(int argc, char **argv, char **env)
{
    char **kept = env;
    (void)argc;
    (void)argv;
    for (; *env != NULL; env++)
        if (!fp_is_about_threads(*env))
            *kept++ = *env;
    *kept = NULL;
}
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(int, char **, char **) = forget_threads;

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    if (!file_hold_standard())
        return EXIT_FAILURE;
    json_set_alloc_funcs(mem_unset, free); /* text that no memory is left for is not bad JSON */
    signal(SIGXFSZ, SIG_IGN); /* at `ulimit -f` a write fails, and its temporary file goes */
    if (argc < 2) {
        help_program(stderr);
        return EXIT_USAGE;
    }
    int code = run(argc - 1, argv + 1, &st);
    if (code < 0) {
        fprintf(stderr, "fuseplan: %s\n", st.message);
        code = exit_code_of(&st);
    }
    if (close_stdout() != 0 && code == EXIT_SUCCESS)
        code = EXIT_FAILURE;
    return code;
}
