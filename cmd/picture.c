#include "cmd/picture_int.h"

enum { TEXT_CELLS = 32, SVG_PIXELS = 768, SVG_LEGEND = 32, SVG_GAP = 24 };

/* The pairs that batch row 0 keeps of queries i0..i1-1 and keys j0..j1-1. */
static int64_t count_kept(const struct workload *w, int i0, int i1, int j0, int j1)
{
    const struct mask *m = &w->mask;
    int length = w->lengths != NULL ? w->lengths[0] : w->seq_len;
    int64_t kept = 0;
    if (i1 > length)
        i1 = length;
    if (j1 > length)
        j1 = length;
    for (int i = i0; i < i1; i++) {
        const uint64_t *row = m->bits + (size_t)i * (size_t)m->row_words;
        for (int j = j0, next; j < j1; j = next) {
            next = (j / 64 + 1) * 64 < j1 ? (j / 64 + 1) * 64 : j1;
            uint64_t bits = row[j / 64] >> j % 64;
            if (next - j < 64)
                bits &= (UINT64_C(1) << (next - j)) - 1;
            kept += __builtin_popcountll(bits);
        }
    }
    return kept;
}

/* A cell's shade: 0 if none of its pairs is kept, `shades` if all are, else in between. */
static int shade(const struct workload *w, int cells, int row, int column, int shades)
{
    int64_t s = w->seq_len;
    int i0 = (int)(row * s / cells), i1 = (int)((row + 1) * s / cells);
    int j0 = (int)(column * s / cells), j1 = (int)((column + 1) * s / cells);
    int64_t all = (int64_t)(i1 - i0) * (j1 - j0), kept = count_kept(w, i0, i1, j0, j1);
    if (kept == 0 || kept == all)
        return kept == 0 ? 0 : shades;
    int middle = (int)(kept * shades / all);
    return middle < 1 ? 1 : middle;
}

void picture_text(const struct workload *w, struct buf *out)
{
    static const char marks[] = ".+#";
    int cells = w->seq_len < TEXT_CELLS ? w->seq_len : TEXT_CELLS;
    for (int row = 0; row < cells; row++) {
        for (int column = 0; column < cells; column++)
            buf_addf(out, "%s%c", column > 0 ? " " : "", marks[shade(w, cells, row, column, 2)]);
        buf_adds(out, "\n");
    }
}

void picture_legend(const struct workload *w)
{
    int cells = w->seq_len < TEXT_CELLS ? w->seq_len : TEXT_CELLS;
    int side = (w->seq_len + cells - 1) / cells;
    if (side == 1)
        puts("\n# kept  . not kept; a row is a query, a column a key");
    else
        printf("\n# all kept  + some  . none; a cell is %s%dx%d pairs, queries down, keys across\n",
               w->seq_len % cells == 0 ? "" : "at most ", side, side);
}

/* ---- as paths -------------------------------------------------------------------------------- */

/* Appends a rectangle of a path of SVG: the cells column..end-1 of a row. */
static void add_run(int row, int column, int end, struct buf *out)
{
    buf_addf(out, "M%d %dh%dv1h-%dz", column, row, end - column, end - column);
}

static void add_cells(const struct workload *w, struct picture *p)
{
    int cells = p->cells;
    for (int row = 0; row < cells; row++)
        for (int column = 0, end; column < cells; column = end) {
            int level = shade(w, cells, row, column, PICTURE_SHADES);
            for (end = column + 1; end < cells; end++)
                if (shade(w, cells, row, end, PICTURE_SHADES) != level)
                    break;
            if (level > 0)
                add_run(row, column, end, &p->shades[level - 1]);
        }
}

/* The lists name key blocks in ascending order: first the full ones, then the partial ones. */
static void add_blocks(const struct block_lists *l, struct buf *all_kept, struct buf *some_kept)
{
    for (int row = 0; row < l->blocks; row++) {
        int full_end = l->start[row] + l->full[row];
        for (int i = l->start[row], end; i < l->start[row + 1]; i = end) {
            bool full = i < full_end;
            int most = full ? full_end : l->start[row + 1], column = l->key_block[i];
            for (end = i + 1; end < most && l->key_block[end] == column + (end - i); end++)
                ;
            add_run(row, column, column + (end - i), full ? all_kept : some_kept);
        }
    }
}

void picture_init(const struct workload *w, struct picture *p)
{
    p->cells = w->seq_len < PICTURE_CELLS ? w->seq_len : PICTURE_CELLS;
    for (int i = 0; i < PICTURE_SHADES; i++)
        buf_init(&p->shades[i]);
    buf_init(&p->full);
    buf_init(&p->partial);
    add_cells(w, p);
    if (w->blocks.blocks <= PICTURE_CELLS)
        add_blocks(&w->blocks, &p->full, &p->partial);
}

void picture_release(struct picture *p)
{
    for (int i = 0; i < PICTURE_SHADES; i++)
        buf_release(&p->shades[i]);
    buf_release(&p->full);
    buf_release(&p->partial);
}

/* Appends a square of `cells` that shows the blocks of one part of the cover; x: its left side. */
static void add_part(const struct cover_part *part, double x, int cells, struct buf *out)
{
    SCOPED_BUF full = BUF_INIT, partial = BUF_INIT;
    double block = (double)cells / part->blocks.blocks;
    add_blocks(&part->blocks, &full, &partial);
    buf_addf(out,
             "<g transform=\"translate(%g 0) scale(%g)\">\n"
             "<rect width=\"%d\" height=\"%d\" fill=\"#f4f4f4\"/>\n"
             "<path d=\"%s\" fill=\"#7a9cbd\"/>\n<path d=\"%s\" fill=\"#1f4e79\"/>\n</g>\n",
             x, block, part->blocks.blocks, part->blocks.blocks, partial.ptr, full.ptr);
}

static void add_legend(double x, const struct picture *p, const char *text, struct buf *out)
{
    double pixel = (double)p->cells / SVG_PIXELS;
    buf_addf(out, "<text x=\"%g\" y=\"%g\" font-size=\"%g\" font-family=\"sans-serif\">%s</text>\n",
             x + 8 * pixel, p->cells + 22 * pixel, 16 * pixel, text);
}

/* The parts of the cover stand to the right of the mask. */
static void add_cover(const struct cover *c, const struct picture *p, struct buf *out)
{
    double pixel = (double)p->cells / SVG_PIXELS;
    for (int i = 0; i < c->parts; i++) {
        double x = (i + 1) * (p->cells + SVG_GAP * pixel);
        SCOPED_BUF text = BUF_INIT;
        cover_part_text(&c->part[i], &text);
        add_part(&c->part[i], x, p->cells, out);
        add_legend(x, p, text.ptr, out);
    }
}

void picture_svg(const struct workload *w, struct buf *out)
{
    SCOPED_BY(picture_release) struct picture p;
    picture_init(w, &p);
    double pixel = (double)p.cells / SVG_PIXELS; /* in cells */
    int width = SVG_PIXELS + w->cover.parts * (SVG_PIXELS + SVG_GAP);
    buf_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %g %g\" shape-rendering=\"crispEdges\">\n<title>",
             width, SVG_PIXELS + SVG_LEGEND, width * pixel, p.cells + SVG_LEGEND * pixel);
    mask_text(&w->mask_spec, out);
    buf_addf(out,
             ", %d x %d</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#f4f4f4\"/>\n"
             "<g fill=\"#1f4e79\">\n",
             w->seq_len, w->seq_len, p.cells, p.cells);
    for (int i = 0; i < PICTURE_SHADES; i++)
        if (p.shades[i].len > 0)
            buf_addf(out, "<path d=\"%s\" opacity=\"%.3g\"/>\n", p.shades[i].ptr,
                     (i + 1.0) / PICTURE_SHADES);
    buf_adds(out, "</g>\n");
    add_legend(0, &p, "a row is a query, a column a key; the darker, the more pairs are kept", out);
    add_cover(&w->cover, &p, out);
    buf_adds(out, "</svg>\n");
}
