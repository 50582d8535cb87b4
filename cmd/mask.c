#include "cmd/picture_int.h"

static const struct column columns[] = {
    {"mask", NULL, 0},        {"seq_len", NULL, 0},        {"batch", NULL, 0},
    {"kept", NULL, 0},        {"element_share", NULL, 0},  {"blocks", NULL, 0},
    {"blocks_full", NULL, 0}, {"blocks_partial", NULL, 0}, {"block_share", NULL, 0},
    {"empty_rows", NULL, 0},  {"cover_blocks", NULL, 0},   {"cover", NULL, 0},
};

static double element_share(const struct workload *w)
{
    return (double)w->blocks.kept / ((double)w->batch * w->seq_len * w->seq_len);
}

static double block_share(const struct block_lists *l)
{
    return (double)(l->blocks_full + l->blocks_partial) / (double)l->blocks_all;
}

/* Null where no order of tokens needs fewer blocks. */
static json_t *cover_json(const struct cover *c)
{
    SCOPED_BUF text = BUF_INIT;
    if (c->parts == 0)
        return json_null();
    for (int i = 0; i < c->parts; i++) {
        buf_adds(&text, i > 0 ? "; " : "");
        cover_part_text(&c->part[i], &text);
    }
    return json_string(text.ptr);
}

static json_t *mask_json(const struct workload *w, const char *text)
{
    const struct block_lists *l = &w->blocks;
    return json_pack("{ss si si sI sf sI sI sI sf sI so so}", "mask", text, "seq_len", w->seq_len,
                     "batch", w->batch, "kept", (json_int_t)l->kept, "element_share",
                     element_share(w), "blocks", (json_int_t)l->blocks_all, "blocks_full",
                     (json_int_t)l->blocks_full, "blocks_partial", (json_int_t)l->blocks_partial,
                     "block_share", block_share(l), "empty_rows", (json_int_t)w->mask.empty_rows,
                     "cover_blocks",
                     w->cover.parts > 0 ? json_integer(cover_entries(&w->cover)) : json_null(),
                     "cover", cover_json(&w->cover));
}

static void print_cover(const struct cover *c)
{
    if (c->parts == 0) {
        printf("cover     none: no order of tokens needs fewer blocks\n");
        return;
    }
    printf("cover     %lld blocks in other orders of tokens\n", (long long)cover_entries(c));
    for (int i = 0; i < c->parts; i++) {
        SCOPED_BUF text = BUF_INIT;
        cover_part_text(&c->part[i], &text);
        printf("          %s\n", text.ptr);
    }
}

static void print_text(const struct workload *w, const char *text)
{
    const struct block_lists *l = &w->blocks;
    int64_t elements = (int64_t)w->batch * w->seq_len * w->seq_len;
    int64_t blocks_kept = l->blocks_full + l->blocks_partial;
    SCOPED_BUF picture = BUF_INIT;
    picture_text(w, &picture);
    printf("mask      %s at S=%d\n", text, w->seq_len);
    printf("elements  %.1f %% kept (%lld of %lld)\n", 100 * element_share(w), (long long)l->kept,
           (long long)elements);
    printf("blocks    %.1f %% of 64x64 keep a pair (%lld of %lld): %lld full, %lld partial\n",
           100 * block_share(l), (long long)blocks_kept, (long long)l->blocks_all,
           (long long)l->blocks_full, (long long)l->blocks_partial);
    print_cover(&w->cover);
    putchar('\n');
    fputs(picture.ptr, stdout);
    picture_legend(w);
}

static int write_npy(const struct workload *w, const char *path, struct status *st)
{
    int64_t shape[3];
    SCOPED unsigned char *keep = NULL;
    SCOPED_BUF bytes = BUF_INIT;
    int dims = workload_kept(w, shape, &keep);
    npy_write(NPY_BOOL, dims, shape, keep, &bytes);
    return file_write(path, bytes.ptr, bytes.len, st);
}

static int write_svg(const struct workload *w, const char *path, struct status *st)
{
    SCOPED_BUF text = BUF_INIT;
    picture_svg(w, &text);
    return file_write(path, text.ptr, text.len, st);
}

static void print(const struct options *o, const struct workload *w)
{
    SCOPED_BUF text = BUF_INIT;
    mask_text(&w->mask_spec, &text);
    progress_hide();
    if (o->format == FORMAT_TABLE)
        print_text(w, text.ptr);
    else
        output_object(o->format, columns, ARRAY_LEN(columns), mask_json(w, text.ptr));
}

static int run(const struct options *given, struct status *st)
{
    struct options o = *given;
    SCOPED_BY(workload_release) struct workload w = {.batch = 0};
    struct target_name target;
    o.mask = o.operands[0];
    if (!options_has(&o, OPT(BATCH))) {
        o.batch = 1;
        o.given |= OPT(BATCH);
    }
    if ((o.npy != NULL && file_check_writable("--npy", o.npy, st) != 0) ||
        (o.svg != NULL && file_check_writable("--svg", o.svg, st) != 0) ||
        workload_from_options(&o, true, &target, &w, st) != 0 ||
        (o.npy != NULL && write_npy(&w, o.npy, st) != 0) ||
        (o.svg != NULL && write_svg(&w, o.svg, st) != 0))
        return -1;
    print(&o, &w);
    return EXIT_SUCCESS;
}

static void list_masks(struct buf *out)
{
    enum { SUMMARY_MAX = 71 }; /* what a line of 100 columns leaves */
    buf_adds(out, "attention masks:\n");
    for (int i = 0; i < mask_kind_count(); i++) {
        const char *name, *usage;
        SCOPED_BUF summary = BUF_INIT;
        mask_kind_info(i, &name, &usage, &summary);
        char *defaults = strstr(summary.ptr, " (");
        bool fits = summary.len <= SUMMARY_MAX || defaults == NULL;
        if (!fits)
            *defaults++ = '\0';
        buf_addf(out, "  %-26s %s\n", usage, summary.ptr);
        if (!fits) /* on a line of their own */
            buf_addf(out, "  %-26s %s\n", "", defaults);
    }
}

const struct command cmd_mask = {
    .name = "mask",
    .operands = "NAME",
    .summary = "Draw an attention mask and say how dense it is",
    .options = OPTS_COMMON | OPT(SEQ_LEN) | OPT(BATCH) | OPT(LENGTHS) | OPT(AVG_SEQ_LEN) |
               OPT(SEED) | OPT(NPY) | OPT(SVG),
    .required = OPT(SEQ_LEN),
    .about = "A cell of the picture is a block of (query, key) pairs: '#' all kept, '+' some, '.' "
             "none.\n"
             "With lengths, pairs with padding are not kept, and the picture shows batch row 0.",
    .more = list_masks,
    .examples = "fuseplan mask strided -s 128\n"
                "fuseplan mask longformer:g=32,w=32 -s 1024 --svg longformer.svg\n"
                "fuseplan mask causal -s 64 -b 4 --avg-seq-len 32 --npy causal.npy",
    .words = words_mask,
    .run = run,
};
