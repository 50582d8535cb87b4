#include "cmd/options_int.h"
#include "cmd/sweep_int.h"

struct parsed {
    struct names words;
    struct options o;
};

/* ---- words ----------------------------------------------------------------------------------- */

/* Appends the next word, up to a blank outside of quotes; returns what follows, null where a quote
 * is not closed. */
static const char *take_word(const char *at, struct buf *word)
{
    while (*at != '\0' && strchr(" \t\r\n", *at) == NULL) {
        if (*at == '\'' || *at == '"') {
            const char *end = strchr(at + 1, *at);
            if (end == NULL)
                return NULL;
            buf_add(word, at + 1, (size_t)(end - at - 1));
            at = end + 1;
        } else {
            at += *at == '\\' && at[1] != '\0';
            buf_add(word, at++, 1);
        }
    }
    return at;
}

int words_split(const char *text, struct names *out, struct status *st)
{
    const char *at = text + strspn(text, " \t\r\n");
    SCOPED_BUF word = BUF_INIT;
    while (at != NULL && *at != '\0' && *at != '#') {
        buf_reset(&word);
        at = take_word(at, &word);
        if (at != NULL)
            names_add(out, word.ptr);
        if (at != NULL)
            at += strspn(at, " \t\r\n");
    }
    return at != NULL ? 0 : status_set(st, STATUS_USAGE, "a quote is not closed");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct command row_command = {
    .name = "sweep", .operands = "", .options = OPTS_ROW, .each = true};

static bool has_row(const struct table *t, const char *key)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].key, key) == 0)
            return true;
    return false;
}

/* Adds the workload of the options, unless it is there. */
static int add_row(struct table *t, const struct options *o, struct status *st)
{
    struct target_name target;
    SCOPED_BY(workload_release) struct workload w;
    struct options quiet = *o;
    SCOPED_BUF key = BUF_INIT, text = BUF_INIT, family = BUF_INIT;
    quiet.given |= OPT(QUIET); /* notes come with the search */
    if (workload_from_options(&quiet, false, &target, &w, st) != 0)
        return -1;
    workload_text(&w, &key);
    buf_addf(&key, " %s %s", target_names[target.kind], ranges_names[o->ranges]);
    options_words(o, OPTS_NAMING, &text);
    options_words(o, OPTS_NAMING & ~(OPT(BATCH) | OPT(SEQ_LEN) | OPT(MASK)), &family);
    if (has_row(t, key.ptr))
        return 0;
    t->rows = mem_resize(t->rows, (size_t)t->count + 1, sizeof(*t->rows));
    t->rows[t->count++] = (struct table_row){.o = *o,
                                             .text = buf_detach(&text),
                                             .family = buf_detach(&family),
                                             .key = buf_detach(&key),
                                             .best.value = -1,
                                             .seconds = NAN};
    return 0;
}

/* Parses words, and adds a row for each batch size and sequence length. */
static int add_words(struct table *t, struct names *words, const char *target, struct status *st)
{
    t->parsed = mem_resize(t->parsed, (size_t)t->parsed_count + 1, sizeof(*t->parsed));
    struct parsed *p = &t->parsed[t->parsed_count++];
    p->words = *words;
    *words = (struct names){.count = 0};
    if (options_parse(&p->o, &row_command, p->words.count, p->words.items, false, st) != 0)
        return -1;
    if (p->o.operand_count > 0)
        return status_set(st, STATUS_USAGE, "'%s' is no option; a row has options alone",
                          p->o.operands[0]);
    if (!options_has(&p->o, OPT(BASELINE))) { /* a sweep prints no times of theirs */
        p->o.baseline = p->o.texts[OPTION_BASELINE] = "none";
        p->o.given |= OPT(BASELINE);
    }
    struct options o = p->o;
    if (!options_has(&o, OPT(TARGET)))
        o.target = target;
    int parts = options_workloads(&o);
    for (int i = 0; i < parts; i++) {
        struct options one = each_part(&o, i);
        if (add_row(t, &one, st) != 0)
            return -1;
    }
    return parts > 0 ? 0 : add_row(t, &o, st);
}

/* How many words from i on name a mask: 0, 1 or 2. */
static int mask_words(const struct names *words, int i)
{
    const char *word = words->items[i];
    if (strcmp(word, "-m") == 0 || strcmp(word, "--mask") == 0)
        return i + 1 < words->count ? 2 : 1;
    return strncmp(word, "--mask=", 7) == 0 || (word[0] == '-' && word[1] == 'm');
}

/* Adds the rows of a line: those of each mask that it names.  common: the command line's options.
 */
static int add_line(struct table *t, const char *common, const char *line, const char *target,
                    struct status *st)
{
    SCOPED_BY(names_release) struct names own = {.count = 0};
    int masks = 0;
    if (words_split(line, &own, st) != 0)
        return -1;
    for (int i = 0; i < own.count; i++)
        masks += mask_words(&own, i) > 0;
    for (int m = 0; own.count > 0 && (m == 0 || m < masks); m++) {
        SCOPED_BY(names_release) struct names words = {.count = 0};
        names_add(&words, row_command.name);
        if (words_split(common, &words, st) != 0)
            return -1;
        for (int i = 0, at = 0; i < own.count; i++) {
            int mask = mask_words(&own, i), skipped = mask > 0 && at++ != m ? mask : 0;
            for (int k = 0; k < (mask > 0 ? mask : 1) && skipped == 0; k++)
                names_add(&words, own.items[i + k]);
            i += mask > 0 ? mask - 1 : 0;
        }
        if (add_words(t, &words, target, st) != 0)
            return -1;
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void make_order(struct table *t, int shards)
{
    t->order = mem_alloc((size_t)t->count + 1, sizeof(*t->order));
    for (int i = 0; i < t->count; i++)
        t->order[i] = (struct sweep_row){.family = t->rows[i].family,
                                         .mask = t->rows[i].o.mask,
                                         .batch = t->rows[i].o.batch,
                                         .seq_len = t->rows[i].o.seq_len,
                                         .index = i};
    sweep_order(t->order, t->count);
    sweep_shards(t->order, t->count, shards);
}

int table_read(const struct options *o, const char *path, const char *target, struct table *out,
               struct status *st)
{
    SCOPED_BUF text = BUF_INIT, common = BUF_INIT;
    *out = (struct table){.count = 0};
    if (target != NULL && strncmp(target, "cuda:", 5) == 0 &&
        (strcmp(target + 5, "all") == 0 || strchr(target, ',') != NULL))
        target = target_names[TARGET_CUDA];
    options_words(o, OPTS_ROW & ~OPT(TARGET), &common);
    int line = 0, result = file_read_text(path, 0, &text, st);
    if (result != 0 && st->code == STATUS_ENVIRONMENT)
        st->code = STATUS_USAGE;
    if (result != 0)
        return -1;
    for (char *rest = text.ptr, *one; (one = strsep(&rest, "\n")) != NULL;) {
        line++;
        if (add_line(out, common.ptr, one, target, st) != 0)
            return status_prefix(st, "%s, line %d", path, line);
    }
    if (out->count == 0)
        return status_set(st, STATUS_USAGE,
                          "'%s' has no row; a row is a line such as '-b 1 -s 128 -m causal'", path);
    make_order(out, o->shards);
    return 0;
}

void table_release(struct table *t)
{
    for (int i = 0; i < t->count; i++) {
        struct table_row *row = &t->rows[i];
        free(row->text);
        free(row->family);
        free(row->key);
        free(row->reason);
        db_best_release(&row->best);
    }
    for (int i = 0; i < t->parsed_count; i++) {
        options_release(&t->parsed[i].o);
        names_release(&t->parsed[i].words);
    }
    free(t->rows);
    free(t->order);
    free(t->parsed);
    *t = (struct table){.count = 0};
}
