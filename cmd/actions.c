#include "cmd/actions.h"

#include <limits.h>

static const struct action *action_at(const struct actions *a, int index)
{
    return (const struct action *)((const char *)a->rows + (size_t)index * a->row_size);
}

void actions_list(const struct actions *a, struct buf *out)
{
    for (int i = 0; i < a->count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", action_at(a, i)->name);
}

void actions_help(const struct actions *a, struct buf *out)
{
    int width = 0; /* of the longest name with its operands */
    for (int i = 0; i < a->count; i++) {
        const struct action *row = action_at(a, i);
        int length = (int)(strlen(row->name) + strlen(row->operands));
        width = length > width ? length : width;
    }
    buf_adds(out, "actions:\n");
    for (int i = 0; i < a->count; i++) {
        const struct action *row = action_at(a, i);
        buf_addf(out, "  %s %-*s  %s\n", row->name, width - (int)strlen(row->name), row->operands,
                 row->summary);
    }
}

static int check_options(const struct actions *a, const struct action *row, const struct options *o,
                         struct status *st)
{
    option_bits stray = o->given & ~(a->options | row->options);
    for (int id = 0; id < OPTION_COUNT; id++)
        if ((stray >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'%s %s' takes no option '--%s'", a->command,
                              row->name, option_info((enum option_id)id)->name);
    return 0;
}

static int count_words(const char *text)
{
    int count = text[0] != '\0';
    for (const char *p = text; *p != '\0'; p++)
        count += *p == ' ';
    return count;
}

int action_check(const struct actions *a, int index, const struct options *o, struct status *st)
{
    const struct action *row = action_at(a, index);
    if (check_options(a, row, o, st) != 0)
        return -1;
    int given = o->operand_count - 1, least = count_words(row->operands);
    int most = strstr(row->operands, "...") != NULL ? INT_MAX : least;
    if (given < least)
        return status_set(st, STATUS_USAGE, "'%s %s' needs %s", a->command, row->name,
                          row->operands);
    if (given > most)
        return status_set(st, STATUS_USAGE, "'%s %s' takes %s; found '%s'", a->command, row->name,
                          most > 0 ? row->operands : "no operand", o->operands[1 + most]);
    return 0;
}
