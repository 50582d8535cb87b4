/* cmd, continued: settings files, fuseplan.conf of the user and of the current directory. */
#pragma once

#include "cmd/cmd.h"

/* A file may set OPTS_SEARCHED and the directory of compiled segments, for which there is no
 * option. */
enum { SETTING_CACHE = OPTION_COUNT, SETTING_COUNT };

struct setting {
    char *text; /* as the option takes it, owned; null: no argument */
    char *file; /* owned; null: no file sets it */
    int line;
};

struct settings {
    struct setting of[SETTING_COUNT];
    option_bits given; /* OPT() bits of those that a file sets */
};

/* What a file calls a setting: an option's name, or "cache". */
const char *setting_name(int id);

/* The options whose value --preset and --model choose. */
extern const option_bits settings_of_preset;
