/* --name of `export`: the names that a library cannot have. */
#include "cmd/generate_int.h"

#include <ctype.h>
#include <string.h>

/* Each name between two blanks. */
static const struct {
    const char *what, *names;
} others[] = {
    {"a word of C, C++ or Python",
     " alignas alignof and and_eq as asm assert async auto await bitand bitor bool break case "
     "catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept const "
     "const_cast consteval constexpr constinit continue decltype def default del delete dim3 do "
     "double dynamic_cast elif else enum except explicit export extern false finally float for "
     "friend from global goto if import in inline int is lambda linux long mutable namespace new "
     "noexcept nonlocal not not_eq nullptr operator or or_eq pass private protected public raise "
     "register reinterpret_cast requires restrict return short signed sizeof static static_assert "
     "static_cast std struct switch template this thread_local throw timer timespec tm true try "
     "typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void "
     "volatile wchar_t while with xor xor_eq yield "},
    {"a header of the system, and the library's own would hide it",
     " alloca cblas complex ctype cuda dirent dlfcn endian errno fcntl features fenv inttypes "
     "iso646 limits locale malloc math memory omp poll pthread sched search semaphore setjmp "
     "signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn "
     "string strings tgmath threads time uchar unistd values wchar wctype "},
    {"a library of the system or a target of CMake",
     " all c clean cudart dl edit_cache gomp help install m openblas package rebuild_cache rt test "
     "util "},
    /* Python's own, and modules that PyTorch and transformers import. */
    {"a Python module, and the library's own would hide it",
     " abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb "
     "binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop "
     "collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg "
     "crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest "
     "email encodings ensurepip faulthandler filecmp fileinput filelock fnmatch fractions fsspec "
     "ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq "
     "hmac html http huggingface_hub idlelib imaplib imghdr imp importlib inspect io ipaddress "
     "itertools jinja2 json keyword lib2to3 linecache logging lzma mailbox mailcap markupsafe "
     "marshal mimetypes mmap modulefinder mpmath msilib msvcrt multiprocessing netrc networkx nis "
     "nntplib nt ntpath nturl2path numbers numpy opcode optparse os ossaudiodev packaging pathlib "
     "pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint "
     "profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re "
     "readline regex reprlib requests resource rlcompleter runpy safetensors secrets select "
     "selectors setuptools shelve shlex shutil site smtpd smtplib sndhdr socket socketserver spwd "
     "sqlite3 sre_compile sre_constants sre_parse ssl stat statistics stringprep subprocess sunau "
     "sympy symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap "
     "threading timeit tkinter token tokenize tokenizers tomllib torch torchgen tqdm trace "
     "traceback tracemalloc transformers triton tty turtle turtledemo types typing "
     "typing_extensions unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser "
     "winreg winsound wsgiref xdrlib xml xmlrpc yaml zipapp zipfile zipimport zlib zoneinfo "},
};

static bool in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if (at[-1] == ' ' && at[len] == ' ')
            return true;
    return false;
}

static const char *find_other(const char *name)
{
    size_t len = strlen(name);
    if (len > 2 && strcmp(name + len - 2, "_t") == 0)
        return "a name of the kind that POSIX keeps for types";
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (in_list(others[i].names, name))
            return others[i].what;
    return NULL;
}

int library_name_check(const struct options *o, const char *name, struct status *st)
{
    enum { NAME_MAX_LEN = 40 };
    struct target_name target;
    bool good = islower((unsigned char)name[0]) != 0 && strlen(name) <= NAME_MAX_LEN;
    for (const char *c = name; *c != '\0' && good; c++)
        good = islower((unsigned char)*c) != 0 || isdigit((unsigned char)*c) != 0 || *c == '_';
    if (!good)
        return status_set(st, STATUS_USAGE,
                          "--name: '%s' cannot begin the names of C functions; give a lower-case "
                          "letter, then up to %d lower-case letters, digits and '_'",
                          name, NAME_MAX_LEN - 1);
    if (target_parse(o->target, &target, st) != 0)
        return -1;
    const char *other = find_other(name);
    if (other == NULL && standalone_name_taken(target.kind, name))
        other = "the name of a file or a type that the library has already";
    return other == NULL ? 0
                         : status_set(st, STATUS_USAGE,
                                      "--name: '%s' is %s; give another name, such as '%s_bert'",
                                      name, other, name);
}
