#include "cmd/help_int.h"

#include <string.h>

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
    for (int i = 0; i < help_exit_count; i++) {
        const struct help_exit *e = &help_exits[i];
        char status[16];
        snprintf(status, sizeof(status), "%d", e->status);
        if (help_exit_applies(e, c))
            print_row(out, status, e->means);
    }
}

static void print_variables(FILE *out, const struct command *c)
{
    int count = 0;
    for (int i = 0; i < help_variable_count; i++) {
        if (!help_variable_applies(&help_variables[i], c))
            continue;
        fputs(count++ == 0 ? "\nenvironment:\n" : "", out);
        print_row(out, help_variables[i].name, help_variables[i].means);
    }
}

void help_program(FILE *out)
{
    fputs("usage: fuseplan COMMAND [OPTION...]\n\n" HELP_PROGRAM ".\n\n", out);
    for (int i = 0; i < command_count; i++)
        fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'fuseplan COMMAND --help' explains a command; 'fuseplan --version' prints the "
          "version.\n",
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

static void print_options(FILE *out, const struct command *c)
{
    struct buf left, text;
    buf_init(&left);
    buf_init(&text);
    fputs("\noptions:\n", out);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((c->options >> id & 1) == 0)
            continue;
        buf_reset(&left);
        buf_reset(&text);
        help_option(option_info((enum option_id)id), &left);
        help_option_text(c, id, &text);
        print_row(out, left.ptr, text.ptr);
    }
    buf_release(&left);
    buf_release(&text);
}

void help_command(const struct command *c, FILE *out)
{
    struct buf usage, more;
    buf_init(&usage);
    buf_init(&more);
    help_usage(c, &usage);
    fprintf(out, "usage: %s\n\n%s.\n", usage.ptr, c->summary);
    if (c->about != NULL)
        fprintf(out, "\n%s\n", c->about);
    if (c->more != NULL)
        c->more(&more);
    fprintf(out, "%s%s", more.len > 0 ? "\n" : "", more.ptr);
    print_options(out, c);
    fputs("\nexamples:\n", out);
    print_lines(out, c->examples);
    print_exits(out, c);
    print_variables(out, c);
    buf_release(&usage);
    buf_release(&more);
}
