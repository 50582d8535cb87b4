#include "cmd/options_int.h"
#include "cmd/settings.h"

static const struct column columns[] = {
    {"setting", "setting", 0}, {"value", "value", 0}, {"from", "from", 0},
    {"file", NULL, 0},         {"line", NULL, 0},
};

/* Appends a place, or what depends on the machine. */
static void add_derived(const struct options *o, int id, struct buf *out)
{
    struct target_name target = {.kind = TARGET_CPU};
    struct status st = STATUS_INIT;
    SCOPED char *place = NULL;
    if (id == OPTION_DB)
        place = db_place(o->db);
    else if (id == SETTING_CACHE)
        place = file_user_dir(NULL, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    else if (target_parse(o->target, &target, &st) == 0)
        buf_adds(out, id == OPTION_TARGET ? target_names[target.kind]
                                          : dtypes[target_default_dtype(target.kind)].name);
    buf_adds(out, place != NULL ? place : "");
}

static void add_value(const struct options *o, int id, struct buf *out)
{
    const option_bits bit = (option_bits)1 << id;
    const int hidden = o->hidden > 0 ? o->hidden : o->heads * o->head_size;
    if (options_has(o, bit))
        buf_adds(out, o->texts[id] != NULL ? o->texts[id] : "true");
    else if (id == SETTING_CACHE || (bit & (OPT(DB) | OPT(TARGET) | OPT(DTYPE))) != 0)
        add_derived(o, id, out);
    else if (id == OPTION_LOCAL_MASK && o->local_width >= 0)
        buf_addf(out, "sliding:w=%d", o->local_width);
    else if (id == OPTION_HIDDEN || id == OPTION_FFN)
        buf_addf(out, "%d", id == OPTION_HIDDEN ? hidden : o->ffn > 0 ? o->ffn : 4 * hidden);
    else if (id != OPTION_PRESET)
        option_text(o, (enum option_id)id, out);
}

/* Appends what says a value; returns the file's line that does, or null. */
static const struct setting *add_source(const struct options *o, int id, bool has_value,
                                        struct buf *out)
{
    const option_bits bit = (option_bits)1 << id;
    const struct setting *file = &o->settings->of[id];
    const char *variable = id == OPTION_DB       ? "FUSEPLAN_DB"
                           : id == SETTING_CACHE ? "FUSEPLAN_CACHE"
                                                 : NULL;
    const char *value = variable != NULL ? getenv(variable) : NULL;
    if (options_has(o, bit & ~o->from_files)) {
        buf_addf(out, "--%s", setting_name(id));
    } else if (file->file != NULL && (variable != NULL || options_has(o, bit))) {
        buf_addf(out, "%s:%d", file->file, file->line);
        return file;
    } else if (value != NULL && value[0] != '\0') {
        buf_adds(out, variable);
    } else if (!has_value) {
        buf_adds(out, "not set");
    } else if ((settings_of_preset & bit) != 0 && options_has(o, OPT(PRESET) | OPT(MODEL))) {
        int by = options_has(o, OPT(PRESET)) ? OPTION_PRESET : OPTION_MODEL;
        buf_addf(out, "%s %s", setting_name(by), o->texts[by]);
    } else {
        buf_adds(out, "built-in");
    }
    return NULL;
}

static void list_actions(struct buf *out)
{
    buf_adds(out, "list");
}

static int run(const struct options *o, struct status *st)
{
    struct output out;
    if (words_find("action", o->operands[0], list_actions, st) < 0)
        return -1;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int id = 0; id < SETTING_COUNT; id++) {
        SCOPED_BUF value = BUF_INIT, from = BUF_INIT;
        if (id != SETTING_CACHE && (OPTS_SEARCHED >> id & 1) == 0)
            continue;
        add_value(o, id, &value);
        const struct setting *file = add_source(o, id, value.len > 0, &from);
        output_row(&out, json_pack("{ss so so so so}", "setting", setting_name(id), "value",
                                   value.len > 0 ? json_text(value.ptr) : json_null(), "from",
                                   json_text(from.ptr), "file",
                                   file != NULL ? json_text(file->file) : json_null(), "line",
                                   file != NULL ? json_integer(file->line) : json_null()));
    }
    output_end(&out);
    return EXIT_SUCCESS;
}

const struct command cmd_config = {
    .name = "config",
    .operands = "list",
    .summary = "Say what each setting is, and whether an option, a variable or a file sets it",
    .options = OPTS_COMMON | OPTS_SEARCHED,
    .each = true,
    .about =
        "'list' prints each setting, its value, and what sets it.\n"
        "fuseplan.conf in the current directory, and fuseplan/fuseplan.conf in $XDG_CONFIG_HOME "
        "or\n"
        "~/.config, set the options below, by their long names, and 'cache', the directory of\n"
        "compiled segments.  They are in git's format:\n"
        "  [fuseplan]\n"
        "      preset = bert-base\n"
        "      batch = 8              # a comment\n"
        "      db = ~/results.db\n"
        "An option wins over a variable, that over the directory's file, and that over the "
        "user's.\n"
        "Options given here show what a command with the same options would take.",
    .examples = "fuseplan config list\n"
                "fuseplan config list --preset bert-large -b 8 --format json",
    .words = list_actions,
    .whole = each_whole, /* lists of sizes are settings, too */
    .run = run,
};
