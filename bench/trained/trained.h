/* trained: weights of a trained model in place of drawn ones.
 *
 * The file is one of safetensors with HuggingFace's names, as kernels/library/weights.c reads it
 * for exported libraries too. */
#pragma once

#include "layer/layer.h"

/* ---- trained.c: weights ---------------------------------------------------------------------- */

struct trained;

/* Determines all values of all layers, as struct drawing does. */
struct inputs {
    uint64_t seed;
    enum ranges ranges;
    const struct trained *trained;         /* weights of a file; null: they are drawn too */
    const struct calibration *calibration; /* scales of e4m3; null: they follow from the inputs */
};

/* STATUS_USAGE if the file cannot be read, is none of safetensors, has no layers of a known family,
 * or has a path that is not UTF-8.  prefix: of the names of its model's tensors; null: there is one
 * model.
 */
int trained_open(const char *path, const char *prefix, struct trained **out, struct status *st);
void trained_close(struct trained *t); /* takes null */
SCOPED_CLOSE(trained, trained_close)

/* Whether the file has the layers of a workload, by its chain and in its sizes, and values that are
 * finite in its type: STATUS_USAGE if not.  It does not say which activation they have.  It may
 * have more layers. */
int trained_check(const struct trained *t, const struct workload *w, struct status *st);

/* The file's path, absolute; the prefix, or null; and the hash of its contents, shards and all. */
const char *trained_path(const struct trained *t);
const char *trained_prefix(const struct trained *t);
char *trained_hash(const struct trained *t, char out[HASH_TEXT_SIZE]);

/* A weight of a layer, both checked; no table of rotations. */
void trained_read(const struct trained *t, const struct workload *w, int layer, int id, float *out);

/* The largest number that an input of a layer's GEMM becomes by its input_scale, of the file's
 * module that has the largest one: STATUS_USAGE if a module has none. */
int trained_input_most(const struct trained *t, const struct workload *w, int layer, int gemm,
                       float *out, struct status *st);

/* Of the norm, (D) each, that makes n of x before layer 0.  False: there is none, and n is x. */
bool trained_first_norm(const struct trained *t, const struct workload *w, float *gamma,
                        float *beta);

/* 16 hexadecimal digits of the layers' arrays 0..9, all but the norm that may be the model's last:
 * the sum of e4m3_fingerprint() (layer/e4m3.h) over layers, arrays and elements, in bf16 if that is
 * the workload's type, else in fp16.  It does not depend on how a file names, splits or orders
 * them, nor on whether it has them in fp32 or rounded to that type.  w: as checked. */
enum { FINGERPRINT_SIZE = 17 };
char *trained_fingerprint(const struct trained *t, const struct workload *w,
                          char out[FINGERPRINT_SIZE]);

/* The same of weights that `read` writes to out, (rows,columns) of weight `id` of a layer. */
typedef void weights_reader(const void *ctx, const struct workload *w, int layer, int id,
                            float *out);
char *weights_fingerprint(const struct workload *w, weights_reader *read, const void *ctx,
                          char out[FINGERPRINT_SIZE]);

/* ---- calibration.c: calibration.json, which fuseplan.calibrate() of Python writes ------------ */

#define CALIBRATION_WEIGHTS "weights" /* in place of a file: the scales beside weights in e4m3 */

struct calibration {
    char *path, *model;        /* owned; the fingerprint of the weights that were calibrated */
    char hash[HASH_TEXT_SIZE]; /* of the file */
    int64_t sentences;         /* that were seen; 0: it does not say */
    int layers;
    float (*scale)[GEMM_COUNT]; /* (layers), owned: of the GEMMs' inputs, powers of two */
};

/* STATUS_USAGE if the file cannot be read or is not as docs/schemas/calibration.json says, or not
 * of a model in this type: bf16, or for any other one fp16.  Release *out in any case. */
int calibration_read(const char *path, enum dtype dtype, struct calibration *out,
                     struct status *st);
void calibration_release(struct calibration *c);

/* Reads and checks a file, or takes the scales that the weights' own file has.  Release *out in any
 * case. */
int calibration_open(const char *path, const struct trained *t, const struct workload *w,
                     struct calibration *out, struct status *st);

/* STATUS_USAGE unless it was made of these weights, with the workload's layers.  t: null where only
 * their number is known. */
int calibration_check(const struct calibration *c, const struct trained *t,
                      const struct workload *w, struct status *st);

/* ---- sentences.c: rows of sentences, which fuseplan.write_rows() of Python writes ------------ */

struct sentences {
    int count, columns, longest;
    int *lengths;      /* (count), owned: tokens of each */
    int64_t tokens;    /* of all */
    const float *rows; /* (tokens, columns), owned: what the first layer gets */
};

/* STATUS_USAGE if the file cannot be read, or is not of such rows.  Release *out in any case. */
int sentences_read(const char *path, struct sentences *out, struct status *st);
void sentences_release(struct sentences *s);

/* ---- model_config.c: a model's config.json --------------------------------------------------- */

/* Of layers of a second kind; see workload_add_local(). */
struct local {
    int width; /* of their mask sliding:w */
    double rope_theta;
    int every; /* 0: all layers are of one kind */
};

struct model_config {
    const struct chain *chain;
    int layers, heads, head_size, ffn;
    int hidden; /* 0: heads * head_size */
    double eps;
    double rope_theta, rope_factor; /* 0 where the chain has none */
    const char *mask;               /* a literal */
    struct local local;
};

/* path: a model's directory, or its config.json; of several models one is chosen by what follows a
 * colon, as in "config.json:vision_config".  STATUS_USAGE if the file is none, if its model is not
 * known, or if a field says that its layers compute what no chain does. */
int model_config_read(const char *path, struct model_config *out, struct status *st);

/* The file of weights in a model's directory, model.safetensors or the index of its shards, which
 * the caller frees; null: there is none, or the path is no directory. */
char *model_weights(const char *path);
