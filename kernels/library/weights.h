/* The weights of a HuggingFace BERT as the library takes them. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "encoder.h"
#include "safetensors.h"

enum { WEIGHTS_ERROR = 600 };

struct weights {
    int layers;
    struct encoder_weights *list; /* (layers), owned */
    void **arrays;                /* (layers, 12), owned: what the list points to */
    char error[WEIGHTS_ERROR];    /* why it could not be read */
};

/* ---- weights.c: values ----------------------------------------------------------------------- */

/* Reads model.safetensors, or model.safetensors.index.json: every layer of a BERT, RoBERTa, XLM-R,
 * CamemBERT, ELECTRA or DistilBERT, or of a model with one, in fp32, fp16 or bf16, converted to the
 * type of `as`, whose sizes it must have.  A model whose layers hold anything else is refused, and
 * so are values that are not finite in that type.
 *
 * prefix: what stands in front of "encoder.layer.0" in the names of the layers wanted, such as
 * "bert", or "." if nothing does; null if only one model is in the file.  0, or -1 with out->error.
 * Release *out in any case. */
int weights_load(const char *path, const char *prefix, const struct encoder_info *as,
                 struct weights *out);
void weights_release(struct weights *w);

/* ---- weights_names.c: which tensor is which -------------------------------------------------- */

enum { WEIGHTS_TENSORS = 16 }; /* of a layer: weight and bias of eight modules */

/* The layers of a file. */
struct weights_file {
    struct safetensors file;
    int layers;
    const struct safetensor *
        *tensors; /* (layers, WEIGHTS_TENSORS), owned; null: a key's bias of 0 */
    char error[WEIGHTS_ERROR];
};

/* Finds the layers of a file, by the names of its tensors.  0, or -1 with out->error.  Close *out
 * in any case. */
int weights_open(const char *path, const char *prefix, struct weights_file *out);
void weights_close(struct weights_file *f);

/* Layers from tensors that were read already: sets layers, tensors and error. */
int weights_find(const char *prefix, struct weights_file *f);

/* Reads one of a layer's twelve arrays, numbered as in struct encoder_weights, and in the type and
 * the sizes of `as`.  out null: only checks names, shapes and values. */
int weights_read(const struct weights_file *f, const struct encoder_info *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR]);

#endif
