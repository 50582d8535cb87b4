/* The sections of base.h on files and directories.  Include base.h. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

/* ---- file.c: files and directories ----------------------------------------------------------- */

/* Opens /dev/null as each of the descriptors 0 to 2 that is closed, so that no file, socket or lock
 * gets its number.  Reading from 0 and writing to 1 or 2 still fails.  main() calls it before it
 * opens anything.  False on failure. */
bool file_hold_standard(void);

/* What a path leads to that is no regular file: "a pipe", "a directory". */
const char *file_mode_name(mode_t mode);

/* Opens a regular file to read it.  Anything else might block or never end:
 * STATUS_ENVIRONMENT, -1. */
int file_open(const char *path, struct status *st);

/* Appends a whole regular file to out.  Fails if it has more than max_bytes; 0: FILE_MAX_BYTES. */
#define FILE_MAX_BYTES ((size_t)256 << 20)
int file_read(const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* The same of a file that is open at its beginning, which it closes in any case. */
int file_read_open(int fd, const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* Creates a directory and its parents; an existing directory is fine. */
int file_make_dirs(const char *path, struct status *st);

/* Removes a file or a directory with all it holds; a missing one is fine. */
int file_remove_all(const char *path, struct status *st);

bool file_exists(const char *path);

/* Appends the directory of the running program. */
int program_directory(struct buf *out, struct status *st);

/* The path from the root.  A link at its end stays.  The caller frees; null with errno if there is
 * no such directory. */
char *file_absolute(const char *path);

/* Whether a name ends in a suffix and has something in front of it: "a.c", not ".c". */
bool file_has_suffix(const char *name, const char *suffix);

/* Whether programs may be run from the file system of a directory: not if it is mounted noexec. */
bool file_may_run(const char *dir);

/* The directory of fuseplan's files of one kind; it may not exist.  The first that is set of:
 * `override` (an option's value, may be null), $`env`, $`xdg`/fuseplan, HOME/`home_dir`/fuseplan,
 * e.g. file_user_dir(opt, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache").  HOME is file_home().
 * env: may be null.  The caller frees. */
char *file_user_dir(const char *override, const char *env, const char *xdg, const char *home_dir);

/* The value of an environment variable; null if it is unset or empty. */
const char *variable_value(const char *name);

/* $HOME, or else what the system's list of users says. */
const char *file_home(void);

/* ---- file_kind.c: what a file is ------------------------------------------------------------- */

enum file_kind { FILE_OTHER, FILE_DATABASE, FILE_GZIP, FILE_RESULTS, FILE_UTF16 };

/* By the first line of a file; *what: the kind and the command that takes it, or null. */
enum file_kind file_kind(const char *bytes, size_t len, const char **what);

/* As file_read(), of text: a byte order mark is left out, and UTF-16 is refused. */
int file_read_text(const char *path, size_t max_bytes, struct buf *out, struct status *st);

/* Bytes of the byte order mark that a text in UTF-8 begins with: 3, or 0 if there is none. */
size_t utf8_mark(const char *bytes, size_t len);

/* ---- write.c: the one way to write a file -------------------------------------------------------
 *
 * A new file, and one that replaces a regular file, is written under a temporary name and renamed,
 * so that readers see either the old contents or the new.  It keeps the old file's owner and mode.
 * Written in place is what a rename would destroy: a device, a FIFO, a file of several names, a
 * file whose directory refuses a new one, and what standard output or standard error is open on.
 * A symbolic link is followed to a file that exists.  One to a file that does not is refused: who
 * made it would choose where a new file lies. */

#define FILE_DANGLES                                                                               \
    "it is a link to what does not exist; remove the link, or name the place that it leads to"

/* "-" and "/dev/stdout" name standard output. */
int file_write(const char *path, const void *data, size_t len, struct status *st);
bool file_is_standard_output(const char *path);

/* To an open file; -1 with errno on a failure. */
int file_write_all(int fd, const void *data, size_t len);

/* Keeps standard output for one file: what the program prints from now on goes to standard error.
 * STATUS_USAGE if another file has it already. */
int file_reserve_standard_output(struct status *st);

/* Fails as file_write() will, where that can be seen without trying. */
int file_check_write(const char *path, struct status *st);

/* What the names of temporary files and directories begin with.  They lie where they will be. */
#define FILE_TEMPORARY_MARK ".fuseplan-tmp-"
bool file_is_temporary(const char *name);

/* Blocks the signals that end the program: for the time in which there is a temporary file, which
 * they would leave behind.  *before: the signal mask until now, which the caller restores. */
void file_hold_signals(sigset_t *before);

/* ---- directory.c: directories written as a whole -----------------------------------------------
 *
 * What is to be in a directory is first written to a temporary directory in it.  A commit moves the
 * entries into the directory, which may be somebody's working directory or a mount point. */

/* A directory that no other process uses, locked (flock): the next process that looks there removes
 * what a killed one left. */
struct scratch_dir {
    char *dir; /* owned; null: there is none */
    int lock;
};
#define SCRATCH_INIT ((struct scratch_dir){.lock = -1})

/* Makes one in a directory; -1 with errno on a failure. */
int scratch_make(const char *parent, struct scratch_dir *out);
void scratch_release(struct scratch_dir *s); /* removes it with all it holds */
void scratch_sweep(const char *parent);      /* removes those of processes that are gone */

struct fresh_dir {
    char *dir;                  /* the absolute path of the directory, owned */
    bool existed;               /* whether the directory did */
    struct scratch_dir staging; /* released: it was committed */
};

/* Makes the directory, all above it, and the temporary one.  Follows a link in its place to a
 * directory that exists, and refuses any other.  Release *out only after success. */
int fresh_dir_open(const char *dir, struct fresh_dir *out, struct status *st);

/* Fails and changes nothing if the directory holds anything, or with `replace` set, if it holds
 * directories of the same names. */
int fresh_dir_commit(struct fresh_dir *s, bool replace, struct status *st);
void fresh_dir_release(struct fresh_dir *s); /* removes what was not committed, and made */

/* A list of names; all zero: empty. */
struct names {
    char **items; /* owned */
    int count;
};
void names_add(struct names *n, const char *name);
bool names_have(const struct names *n, const char *name);
void names_text(const struct names *n, struct buf *out); /* "'a', 'b'"; many: "... and 9 more" */
void names_release(struct names *n);

/* All entries but . and .., sorted; of a directory that does not exist none. */
int directory_list(const char *dir, struct names *out, struct status *st);

/* ---- trust.c: who else could have written what is run ---------------------------------------- */

enum trust {
    TRUST_MADE, /* nobody but us and root owns the directory or may write to it; what is missing is
                   made, for us alone */
    TRUST_WAY   /* the directory may be anybody's, as one that users share; the way there is safe */
};

/* Follows a path to a directory, component by component.  Each directory on the way belongs to us
 * or root, and others may not write to it; it may be sticky instead, as /tmp is, if what comes next
 * is ours or root's.  Each link belongs to us or root.  So no other user can make the path lead
 * elsewhere later.  Returns the absolute path without links, which the caller uses from then on and
 * frees.  Null with STATUS_ENVIRONMENT otherwise. */
char *file_trust(const char *path, enum trust how, struct status *st);

/* Whether a regular file is ours or root's and only its owner may write to it. */
bool file_is_ours(const char *path);

/* As file_open(), of a file that is ours or root's and that only its owner may write to, by a link
 * of ours or root's.  STATUS_ENVIRONMENT otherwise. */
int file_trust_open(const char *path, struct status *st);
