#include "cmd/cmd.h"

#include <string.h>

void help_program(FILE *out)
{
    fputs("usage: fuseplan COMMAND [OPTION...]\n\n"
          "Finds, verifies and explains the fastest fusion plan of a BERT encoder layer.\n\n",
          out);
    for (int i = 0; i < command_count; i++)
        fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'fuseplan COMMAND --help' explains a command; 'fuseplan --version' prints the "
          "version.\n",
          out);
}

static void add_option(const struct option_info *info, struct buf *out)
{
    struct buf left;
    buf_init(&left);
    if (info->letter != '\0')
        buf_addf(&left, "-%c,", info->letter);
    buf_addf(&left, "%*s--%s%s%s", left.len > 0 ? 1 : 4, "", info->name,
             info->argument != NULL ? " " : "", info->argument != NULL ? info->argument : "");
    buf_addf(out, "  %-26s %s\n", left.ptr, info->help);
    buf_release(&left);
}

/* Indents each line. */
static void add_lines(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        buf_addf(out, "  %.*s\n", (int)len, text);
        text += len + (text[len] == '\n');
    }
}

void help_command(const struct command *c, FILE *out)
{
    struct buf text;
    buf_init(&text);
    buf_addf(&text, "usage: fuseplan %s%s%s [OPTION...]\n\n%s.\n", c->name,
             c->operands[0] != '\0' ? " " : "", c->operands, c->summary);
    if (c->about != NULL)
        buf_addf(&text, "\n%s\n", c->about);
    if (c->more != NULL) {
        buf_adds(&text, "\n");
        c->more(&text);
    }
    buf_adds(&text, "\noptions:\n");
    for (int id = 0; id < OPTION_COUNT; id++)
        if ((c->options >> id & 1) != 0)
            add_option(option_info((enum option_id)id), &text);
    buf_adds(&text, "\nexamples:\n");
    add_lines(c->examples, &text);
    fputs(text.ptr, out);
    buf_release(&text);
}
