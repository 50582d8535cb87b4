/* Manual pages in the man macros of troff (man(7)), from the tables that --help is made from. */
#include "cmd/help_int.h"

#include <string.h>

/* Appends text so that troff prints it as it is. */
static void add_text(const char *text, struct buf *out)
{
    bool line_begins = out->len == 0 || out->ptr[out->len - 1] == '\n';
    for (; *text != '\0'; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            buf_adds(out, "\\&");
        if (*text == '\\')
            buf_adds(out, "\\e");
        else if (*text == '-')
            buf_adds(out, "\\-");
        else if (*text == '\'')
            buf_adds(out, "\\(aq");
        else
            buf_addf(out, "%c", *text);
        line_begins = *text == '\n';
    }
}

static void add_section(const char *title, struct buf *out)
{
    buf_addf(out, ".SH %s\n", title);
}

/* A paragraph with a tag in front. */
static void add_item(const char *tag, const char *text, struct buf *out)
{
    buf_adds(out, ".TP\n.B ");
    add_text(tag, out);
    buf_adds(out, "\n");
    add_text(text, out);
    buf_adds(out, "\n");
}

/* Lines that stay as they are. */
static void add_lines(const char *text, struct buf *out)
{
    buf_adds(out, ".nf\n");
    add_text(text, out);
    buf_addf(out, "%s.fi\n", text[strlen(text) - 1] == '\n' ? "" : "\n");
}

static void add_head(const char *name, const char *summary, struct buf *out)
{
    buf_addf(out, ".TH \"%s\" \"1\" \"\" \"fuseplan " FUSEPLAN_VERSION "\" \"fuseplan\"\n", name);
    add_section("NAME", out);
    add_text(name, out);
    buf_adds(out, " \\- ");
    add_text(summary, out);
    buf_adds(out, "\n");
    add_section("SYNOPSIS", out);
}

static void add_exits_and_variables(const struct command *c, struct buf *out)
{
    add_section("EXIT STATUS", out);
    for (int i = 0; i < help_exit_count; i++) {
        char status[16];
        snprintf(status, sizeof(status), "%d", help_exits[i].status);
        if (help_exit_applies(&help_exits[i], c))
            add_item(status, help_exits[i].means, out);
    }
    int count = 0;
    for (int i = 0; i < help_variable_count; i++) {
        if (!help_variable_applies(&help_variables[i], c))
            continue;
        if (count++ == 0)
            add_section("ENVIRONMENT", out);
        add_item(help_variables[i].name, help_variables[i].means, out);
    }
}

static void add_options(const struct command *c, struct buf *out)
{
    struct buf tag, text;
    buf_init(&tag);
    buf_init(&text);
    add_section("OPTIONS", out);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((c->options >> id & 1) == 0)
            continue;
        buf_reset(&tag);
        buf_reset(&text);
        help_option(option_info((enum option_id)id), &tag);
        help_option_text(c, id, &text);
        add_item(tag.ptr + strspn(tag.ptr, " "), text.ptr, out);
    }
    buf_release(&tag);
    buf_release(&text);
}

void man_command(const struct command *c, FILE *out)
{
    struct buf page, text;
    buf_init(&page);
    buf_init(&text);
    buf_addf(&text, "fuseplan-%s", c->name);
    add_head(text.ptr, c->summary, &page);
    buf_reset(&text);
    help_usage(c, &text);
    add_text(text.ptr, &page);
    buf_adds(&page, "\n");
    add_section("DESCRIPTION", &page);
    add_text(c->summary, &page);
    buf_adds(&page, ".\n");
    if (c->about != NULL) {
        buf_adds(&page, ".PP\n");
        add_text(c->about, &page);
        buf_adds(&page, "\n");
    }
    buf_reset(&text);
    if (c->more != NULL) {
        c->more(&text);
        buf_adds(&page, ".PP\n");
        add_lines(text.ptr, &page);
    }
    add_options(c, &page);
    add_section("EXAMPLES", &page);
    add_lines(c->examples, &page);
    add_exits_and_variables(c, &page);
    add_section("SEE ALSO", &page);
    buf_adds(&page, ".BR fuseplan (1)\n");
    fputs(page.ptr, out);
    buf_release(&page);
    buf_release(&text);
}

void man_program(FILE *out)
{
    struct buf page;
    buf_init(&page);
    add_head("fuseplan", HELP_PROGRAM, &page);
    buf_adds(&page, "fuseplan COMMAND [OPTION...]\n");
    add_section("DESCRIPTION", &page);
    buf_adds(&page, "Each command has a page of its own, such as\n.BR fuseplan\\-search (1),\n"
                    "which\n.B fuseplan COMMAND \\-\\-help\nprints in short.\n");
    add_section("COMMANDS", &page);
    for (int i = 0; i < command_count; i++)
        add_item(commands[i]->name, commands[i]->summary, &page);
    add_exits_and_variables(NULL, &page);
    add_section("SEE ALSO", &page);
    for (int i = 0; i < command_count; i++)
        buf_addf(&page, ".BR fuseplan\\-%s (1)%s\n", commands[i]->name,
                 i < command_count - 1 ? "," : "");
    fputs(page.ptr, out);
    buf_release(&page);
}
