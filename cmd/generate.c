#include "cmd/cmd.h"
static int run(const struct options *o, struct status *st)
{
    (void)o;
    (void)st;
    return 0;
}
const struct command cmd_generate = {.name = "generate",
                                     .operands = "VALUE",
                                     .summary = "x",
                                     .examples = "x",
                                     .options = OPTS_COMMON,
                                     .run = run};
