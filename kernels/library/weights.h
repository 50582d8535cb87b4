/* The weights of a HuggingFace BERT as the library takes them. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "encoder.h"

struct weights {
    int layers;
    struct encoder_weights *list; /* (layers), owned */
    void **arrays;                /* (layers, 12), owned: what the list points to */
    char error[256];              /* why it could not be read */
};

/* Reads model.safetensors: every layer of a BertModel, or of a model with one, in fp32, fp16 or
 * bf16, converted to the library's type.  0, or -1 with out->error.  Release *out in any case. */
int weights_load(const char *path, struct weights *out);
void weights_release(struct weights *w);

#endif
