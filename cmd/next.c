/* Commands for people to go on with. */
#include "cmd/search_int.h"

void next_print(const struct options *o, const struct next_step *steps, int count)
{
    bool part = o->texts[OPTION_BATCH] == NULL; /* of a list of sizes, which ends with its own */
    if (!output_is_terminal(o->format) || options_has(o, OPT(QUIET)) || part)
        return;
    puts("\nnext:");
    for (int i = 0; i < count; i++) {
        SCOPED_BUF command = BUF_INIT;
        options_command(o, steps[i].command, steps[i].options, &command);
        printf("  %s%s\n", command.ptr, steps[i].more);
    }
}
