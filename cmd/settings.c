#include "cmd/settings.h"

#include "cmd/options_int.h"

#include <sys/stat.h>

#define SETTINGS_FILE "fuseplan.conf"

const option_bits settings_of_preset =
    OPT(PRESET) | OPT(MODEL) | OPT(HEADS) | OPT(HEAD_SIZE) | OPT(HIDDEN) | OPT(LAYERS) | OPT(FFN) |
    OPT(EPS) | OPT(MASK) | OPT(NORM) | OPT(NORM_KIND) | OPT(ACTIVATION) | OPT(GATE) | OPT(ROPE) |
    OPT(SCORE_BIAS) | OPT(LOCAL_MASK) | OPT(LOCAL_ROPE) | OPT(GLOBAL_EVERY);

/* Options that lose what a lower level says where a higher one gives any of these.  The levels are,
 * from the highest: command line, directory's file, user's file. */
static option_bits replaced_by(option_bits given)
{
    const option_bits lengths = OPT(LENGTHS) | OPT(AVG_SEQ_LEN);
    option_bits out = given;
    if ((given & (OPT(PRESET) | OPT(MODEL))) != 0)
        out |= settings_of_preset;
    if ((given & OPT(LOCAL_MASK)) != 0)
        out |= OPT(LOCAL_ROPE) | OPT(GLOBAL_EVERY);
    return (given & lengths) != 0 ? out | lengths : out;
}

/* ---- one setting ----------------------------------------------------------------------------- */

const char *setting_name(int id)
{
    return id == SETTING_CACHE ? "cache" : option_info((enum option_id)id)->name;
}

static int find_setting(const char *key, struct status *st)
{
    const char *names[SETTING_COUNT];
    int n = 0;
    for (int id = 0; id < SETTING_COUNT; id++) {
        if (id != SETTING_CACHE && (OPTS_SEARCHED >> id & 1) == 0)
            continue;
        names[n++] = setting_name(id);
        if (strcmp(key, names[n - 1]) == 0)
            return id;
    }
    const char *nearest = nearest_word(key, names, n);
    return status_set(st, STATUS_USAGE,
                      "unknown setting '%s'; %s%s%s'fuseplan config list' prints all settings", key,
                      nearest != NULL ? "did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'? " : "");
}

/* Where the path in a value begins; null: it has none. */
static const char *path_in(int id, const char *value)
{
    bool file = (id == OPTION_MASK || id == OPTION_LOCAL_MASK) && strncmp(value, "file:", 5) == 0;
    return id == OPTION_DB || id == SETTING_CACHE || id == OPTION_MODEL ? value
           : file                                                       ? value + 5
                                                                        : NULL;
}

/* The text that the option takes, which the caller frees: with a home directory for '~'.  The
 * user's file holds in all directories. */
static char *expand(int id, const char *value, bool user, struct status *st)
{
    const char *path = path_in(id, value);
    struct buf text = BUF_INIT;
    if (path != NULL && strncmp(path, "~/", 2) == 0)
        buf_addf(&text, "%.*s%s%s", (int)(path - value), value, file_home(), path + 1);
    else if (path != NULL && path[0] != '/' && user)
        status_set(st, STATUS_USAGE,
                   "%s: '%s' depends on the current directory; begin the path with '/' or '~/'",
                   setting_name(id), path);
    else
        buf_adds(&text, value);
    return buf_detach(&text);
}

static int check_value(int id, const char *text, struct status *st)
{
    struct options scratch = {.given = 0};
    SCOPED_BY(mask_spec_release) struct mask_spec mask = {.path = NULL};
    struct target_name target;
    int result = 0;
    if (id == SETTING_CACHE)
        return text[0] != '\0' ? 0 : status_set(st, STATUS_USAGE, "cache: the text is empty");
    if (option_set(&scratch, (enum option_id)id, setting_name(id), text, st) != 0)
        return -1;
    if (id == OPTION_MASK || (id == OPTION_LOCAL_MASK && strcmp(text, "none") != 0))
        result = mask_parse(text, &mask, st);
    return id == OPTION_TARGET ? target_parse(text, &target, st) : result;
}

static int take_entry(struct settings *s, const struct conf_entry *e, const char *file, bool user,
                      struct status *st)
{
    int id = find_setting(e->key, st);
    if (id < 0)
        return -1;
    const char *argument = id == SETTING_CACHE ? "DIR" : option_info((enum option_id)id)->argument;
    bool optional = argument[0] == '[', alone = e->value == NULL;
    if (optional && !alone && strcmp(e->value, "true") == 0) /* as git has it */
        alone = true;
    if (alone && !optional)
        return status_set(st, STATUS_USAGE, "'%s' has no value; expected '%s = %s'", e->key, e->key,
                          argument);
    if (optional && !alone && strcmp(e->value, "none") != 0)
        return status_set(st, STATUS_USAGE, "%s: '%s' is neither true nor none", e->key, e->value);
    struct setting *at = &s->of[id];
    *at = (struct setting){.file = mem_strdup(file), .line = e->line};
    at->text = alone ? NULL : expand(id, e->value, user, st);
    s->given |= (option_bits)1 << id;
    return st->code != STATUS_OK ? -1 : check_value(id, at->text, st);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void forget(struct settings *s, option_bits which)
{
    for (int id = 0; id < SETTING_COUNT; id++)
        if ((which >> id & 1) != 0) {
            free(s->of[id].text);
            free(s->of[id].file);
            s->of[id] = (struct setting){.file = NULL};
        }
    s->given &= ~which;
}

static int read_file(const char *path, bool user, struct settings *out, struct status *st)
{
    enum { BYTES_MAX = 1 << 16 };
    SCOPED_BY(conf_release) struct conf conf = {.count = 0};
    struct stat info;
    SCOPED_BUF text = BUF_INIT;
    /* A directory of another's home may be closed to us. */
    if (lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return 0;
    int fd = file_trust_open(path, st);
    if (fd < 0)
        return status_prefix(st, "a settings file is refused; FUSEPLAN_CONFIG=off does without");
    if (file_read_open(fd, path, BYTES_MAX, &text, st) != 0 ||
        conf_parse(path, &text, "fuseplan", &conf, st) != 0)
        return -1;
    for (int i = 0; i < conf.count; i++)
        if (take_entry(out, &conf.items[i], path, user, st) != 0)
            return status_prefix(st, "%s:%d", path, conf.items[i].line);
    return 0;
}

/* Adds what a file sets to what files below it set. */
static int read_level(const char *path, bool user, struct settings *s, struct status *st)
{
    struct settings level = {.given = 0};
    int result = read_file(path, user, &level, st);
    forget(s, replaced_by(level.given));
    for (int id = 0; id < SETTING_COUNT; id++)
        if ((level.given >> id & 1) != 0)
            s->of[id] = level.of[id];
    s->given |= level.given;
    return result;
}

static int read_files(struct settings *s, struct status *st)
{
    SCOPED char *dir = file_user_dir(NULL, NULL, "XDG_CONFIG_HOME", ".config");
    SCOPED char *path = buf_text("%s/" SETTINGS_FILE, dir);
    return read_level(path, true, s, st) == 0 ? read_level(SETTINGS_FILE, false, s, st) : -1;
}

/* ---- what they mean for a command ------------------------------------------------------------ */

/* Sets a variable that is not set. */
static void set_variable(struct settings *s, int id, const char *name)
{
    if (variable_value(name) != NULL)
        forget(s, (option_bits)1 << id);
    else if (s->of[id].file != NULL)
        setenv(name, s->of[id].text, 1);
}

/* Where the command needs no workload, a file does not name one: `report` is then of all. */
static bool takes_sizes(const struct command *c)
{
    return (c->required & OPT(SEQ_LEN)) != 0 || c == &cmd_config;
}

int settings_apply(struct options *o, const struct command *c, struct status *st)
{
    const char *mode = variable_value("FUSEPLAN_CONFIG");
    bool unset = mode == NULL, places = !unset && strcmp(mode, "places") == 0;
    o->settings = mem_alloc(1, sizeof(*o->settings));
    if (!unset && !places && strcmp(mode, "off") != 0)
        return status_set(st, STATUS_USAGE,
                          "FUSEPLAN_CONFIG: unknown word '%s'; expected off or places", mode);
    if ((unset || places) && read_files(o->settings, st) != 0)
        return -1;
    set_variable(o->settings, OPTION_DB, "FUSEPLAN_DB");
    set_variable(o->settings, SETTING_CACHE, "FUSEPLAN_CACHE");
    setenv("FUSEPLAN_CONFIG", "off", 1); /* what this process starts has all of it already */
    option_bits wanted = places || !takes_sizes(c) ? 0 : c->options & ~OPT(DB);
    o->from_files = o->settings->given & wanted & ~replaced_by(o->given);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((o->from_files >> id & 1) == 0)
            continue;
        o->texts[id] = o->settings->of[id].text;
        if (option_set(o, (enum option_id)id, setting_name(id), o->texts[id], st) != 0)
            return -1;
    }
    return 0;
}

void settings_text(const struct options *o, struct buf *out)
{
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((o->from_files >> id & 1) == 0)
            continue;
        const struct setting *s = &o->settings->of[id];
        buf_adds(out, out->len > 0 ? ", --" : "--");
        buf_adds(out, setting_name(id));
        if (s->text != NULL) {
            buf_adds(out, option_needs_argument(option_info((enum option_id)id)) ? " " : "=");
            buf_add_word(out, s->text);
        }
        buf_addf(out, " (%s:%d)", s->file, s->line);
    }
}

void settings_free(struct settings *s)
{
    if (s != NULL)
        forget(s, ~(option_bits)0);
    free(s);
}
