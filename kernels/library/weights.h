/* The weights of a HuggingFace BERT as the library takes them. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "encoder.h"
#include "safetensors.h"

enum { WEIGHTS_ERROR = 256 };

struct weights {
    int layers;
    struct encoder_weights *list; /* (layers), owned */
    void **arrays;                /* (layers, 12), owned: what the list points to */
    char error[WEIGHTS_ERROR];    /* why it could not be read */
};

/* Reads model.safetensors: every layer of a BertModel, or of a model with one, in fp32, fp16 or
 * bf16, converted to the type of `as`, whose sizes it must have.  0, or -1 with out->error.
 * Release *out in any case. */
int weights_load(const char *path, const struct encoder_info *as, struct weights *out);
void weights_release(struct weights *w);

/* The layers that a file has. */
int weights_layers(const struct safetensors *f);

/* Reads one of a layer's twelve arrays, numbered as in struct encoder_weights.  out null: only
 * checks that it is there. */
int weights_read(const struct safetensors *f, const struct encoder_info *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR]);

#endif
