/* cmd, continued: commands whose first operand is an action, as in `fuseplan db list`. */
#pragma once

#include "cmd/cmd.h"

/* The first member of a row of a command's table, which has in it how the action runs. */
struct action {
    const char *name;
    const char *operands; /* after the action, with blanks between them: "", "FILE", "FILE..." */
    const char *summary;
    option_bits options; /* OPT() bits that not all actions of the command take */
};

struct actions {
    const char *command;
    const void *rows;
    size_t row_size;
    int count;
    option_bits options; /* that all of them take */
};

#define ACTIONS(command, rows, options)                                                            \
    {                                                                                              \
        command, rows, sizeof((rows)[0]), (int)ARRAY_LEN(rows), options                            \
    }

/* The names, with blanks between them; and the lines of --help. */
void actions_list(const struct actions *a, struct buf *out);
void actions_help(const struct actions *a, struct buf *out);

/* Checks the options and operands that the action takes; STATUS_USAGE names what does not fit. */
int action_check(const struct actions *a, int index, const struct options *o, struct status *st);
