#include "bench/worker/worker_int.h"

void packing_init(struct packing *p, const struct workload *w)
{
    int n = 0;
    *p = (struct packing){.tokens = 0};
    if (w->lengths == NULL)
        return;
    p->tokens = (int)workload_tokens(w);
    p->unpacked = mem_alloc((size_t)p->tokens, sizeof(*p->unpacked));
    p->offset = mem_alloc((size_t)w->batch + 1, sizeof(*p->offset));
    for (int b = 0; b < w->batch; b++) {
        p->offset[b] = n;
        for (int s = 0; s < w->lengths[b]; s++)
            p->unpacked[n++] = b * w->seq_len + s;
    }
    p->offset[w->batch] = n;
}

void packing_release(struct packing *p)
{
    free(p->unpacked);
    free(p->offset);
    *p = (struct packing){.tokens = 0};
}
