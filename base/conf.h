/* The section of base.h on settings files.  Include base.h. */
#pragma once

#include "base/base.h"

/* ---- conf.c: settings in git's format -----------------------------------------------------------
 *
 * git-config(1), "CONFIGURATION FILE", of which one section without subsections is read:
 *
 *     # a comment
 *     [fuseplan]
 *         batch = 8
 *         db = "/data/results of May.db" ; quotes keep blanks and '#'
 *         gate
 *
 * `git config -f FILE --list` reads the same.  Names are in any case. */

struct conf_entry {
    char *key;   /* in lower case, owned */
    char *value; /* owned; null: the line has the key alone */
    int line;    /* from 1 on */
};

struct conf {
    struct conf_entry *items; /* of different keys, in the order of the file */
    int count;
};

/* Reads a text whose one section has the name `section`.  STATUS_USAGE names file and line:
 * "NAME:3:
 * ...".  Release *out in any case. */
int conf_parse(const char *name, const struct buf *text, const char *section, struct conf *out,
               struct status *st);
void conf_release(struct conf *c);
