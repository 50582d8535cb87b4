/* The weights of a HuggingFace model as the library takes them. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "encoder.h"
#include "safetensors.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIGHTS_ERROR = 600, WEIGHTS_SHARED = 3 };

struct weights {
    int layers;
    struct encoder_weights *list; /* (layers), owned */
    void **arrays;                /* (layers, 12), owned: what the list points to */
    void *shared[WEIGHTS_SHARED]; /* owned: score_bias, first_gamma and first_beta, or null */
    char error[WEIGHTS_ERROR];    /* why it could not be read */
};

/* ---- weights.c: values ----------------------------------------------------------------------- */

/* Reads model.safetensors, or model.safetensors.index.json: every layer of a model of
 * weights_families.c, or of one around it, in fp32, fp16 or bf16, or matrices in e4m3 with scales,
 * converted to the type of `as`, whose sizes and functions it must have.  A model whose layers hold
 * anything else is refused, and so are values that are not finite in that type.
 *
 * prefix: what stands in front of "encoder.layer.0" in the names of the layers wanted, such as
 * "bert", or "." if nothing does; null if only one model is in the file.  0, or -1 with out->error.
 * Release *out in any case. */
int weights_load(const char *path, const char *prefix, const struct encoder_info *as,
                 struct weights *out);
void weights_release(struct weights *w);

/* ---- weights_names.c, weights_families.c: which tensor is which ------------------------------ */

/* Of a layer: weight and bias of eleven modules, then the scales of their weights and inputs. */
enum { WEIGHTS_TENSORS = 44 };

/* The layers of a file. */
struct weights_file {
    struct safetensors file;
    const struct family *family;
    int layers; /* in the file */
    /* (layers, WEIGHTS_TENSORS), owned; null: the family has none, or a bias of 0 */
    const struct safetensor **tensors;
    const struct safetensor *final[2]; /* weight and bias of the last norm; null: 1 and 0 */
    const struct safetensor *buckets;  /* of relative positions; null: the family has none */
    char error[WEIGHTS_ERROR];
};

/* Finds the layers of a file, by the names of its tensors.  0, or -1 with out->error.  Close *out
 * in any case. */
int weights_open(const char *path, const char *prefix, struct weights_file *out);
void weights_close(struct weights_file *f);

/* Layers from tensors that were read already: sets all but the file. */
int weights_find(const char *prefix, struct weights_file *f);

/* ---- weights_read.c: arrays ------------------------------------------------------------------ */

/* What arrays are for. */
struct weights_as {
    enum encoder_dtype dtype;
    int heads, head_size, hidden, ffn, layers;
    int seq_len;        /* for WEIGHTS_BIAS_TABLE alone */
    unsigned functions; /* enum encoder_functions */
    double rope_factor; /* of rotary embeddings; 0: not given */
};

/* Arrays beside the twelve of struct encoder_weights, which have its order.  Those are row-major
 * as encoder.h says; of a gate w1 is (D,2F) and b1 (2F), columns 2c activated and columns 2c+1
 * their factors.  Where norms stand before, gamma1 and beta1 are those before the feed-forward
 * network, gamma2 and beta2 those before the next layer's attention, or the last. */
enum {
    WEIGHTS_BIAS_TABLE =
        13,              /* (H, 2S-1) in fp32, whatever the type: of distance j-i at j-i + S-1 */
    WEIGHTS_FIRST_GAMMA, /* (D) of the norm before layer 0 */
    WEIGHTS_FIRST_BETA,
    WEIGHTS_ARRAYS
};

/* Layers that a model of `as` has: its own number if it shares the file's among them. */
int weights_layers(const struct weights_file *f, const struct weights_as *as);

/* Checks that the layers compute what those of `as` do.  0, or -1 with what they differ in. */
int weights_check(const struct weights_file *f, const struct weights_as *as,
                  char error[WEIGHTS_ERROR]);

size_t weights_elements(const struct weights_as *as, int weight);

/* Whether a norm stands before layer 0. */
bool weights_has_first(const struct weights_file *f);

/* Reads one of a layer's arrays, of a file that weights_check() took, in the type and the sizes of
 * `as`.  out null: only checks names, shapes and values. */
int weights_read(const struct weights_file *f, const struct weights_as *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR]);

#ifdef __cplusplus
}
#endif

#endif
