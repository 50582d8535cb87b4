#include "cmd/cmd.h"

/* All other failures exit with EXIT_FAILURE. */
static const int exit_codes[STATUS_CODE_COUNT] = {
    [STATUS_USAGE] = EXIT_USAGE,
    [STATUS_NOT_FOUND] = EXIT_NO_RESULT,
    [STATUS_WRONG] = EXIT_NO_RESULT,
    [STATUS_INTERRUPTED] = EXIT_INTERRUPTED,
};

int exit_code_of(const struct status *st)
{
    return exit_codes[st->code] != 0 ? exit_codes[st->code] : EXIT_FAILURE;
}
