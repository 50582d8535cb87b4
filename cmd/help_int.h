/* Shared by the files that explain commands: --help and the manual pages. */
#ifndef FUSEPLAN_CMD_HELP_INT_H
#define FUSEPLAN_CMD_HELP_INT_H

#include "cmd/cmd.h"

/* ---- help.c, man.c: --help, and manual pages ------------------------------------------------- */

void help_program(FILE *out);
void help_command(const struct command *c, FILE *out);
void man_program(FILE *out);
void man_command(const struct command *c, FILE *out);

/* ---- help_table.c: what --help and the manual pages say of all commands ---------------------- */

#define HELP_PROGRAM "Finds, verifies and explains the fastest fusion plan of a BERT encoder layer"

struct help_exit {
    int status;
    unsigned commands; /* EXITS_ bits of the commands that exit so; 0: all do */
    const char *means;
};
extern const struct help_exit help_exits[];
extern const int help_exit_count;

struct help_variable {
    const char *name;
    uint64_t options; /* a command that takes one of the options reads the variable */
    const char *means;
};
extern const struct help_variable help_variables[];
extern const int help_variable_count;

/* Whether the command, or any command if it is null, exits with or reads it. */
bool help_exit_applies(const struct help_exit *e, const struct command *c);
bool help_variable_applies(const struct help_variable *v, const struct command *c);

/* Appends "fuseplan search -b N -s N [OPTION...]". */
void help_usage(const struct command *c, struct buf *out);

/* Appends "-b, --batch N", or with four blanks in the place of a letter. */
void help_option(const struct option_info *info, struct buf *out);

/* Appends an option's text and whether the command requires it. */
void help_option_text(const struct command *c, int id, struct buf *out);

#endif
