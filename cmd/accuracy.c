#include "bench/accuracy/accuracy.h"
#include "cmd/cmd.h"

#define SATURATED_MOST 1e-4 /* a share of a tensor that is worth a warning */

/* ---- output ---------------------------------------------------------------------------------- */

static const struct column first_columns[] = {{"precision", "precision", 0},
                                              {"gemms", "e4m3 GEMMs", 0},
                                              {"weight_scales", "weights' scales", 0},
                                              {"beside", "beside", 0}};
static const struct column last_columns[] = {{"cosine_mean", "cosine, tokens", 5},
                                             {"cosine_least", "least", 5},
                                             {"sentence_cosine", "sentences", 5},
                                             {"agreement", "top-10", 3},
                                             {"saturated_most", "saturated at most", 6}};

/* Columns of the errors after some layers, the last among them. */
enum { ERRORS_MOST = 6, COLUMNS_MOST = 4 + ERRORS_MOST + 5 };
struct columns {
    struct column list[COLUMNS_MOST];
    char keys[ERRORS_MOST][32], titles[ERRORS_MOST][32];
    int count;
};

static void add_columns(struct columns *c, const struct column *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        c->list[c->count++] = list[i];
}

static void make_columns(struct columns *c, int layers)
{
    const int shown = layers < ERRORS_MOST ? layers : ERRORS_MOST;
    c->count = 0;
    add_columns(c, first_columns, ARRAY_LEN(first_columns));
    for (int i = 0; i < shown; i++) {
        int layer = layers * (i + 1) / shown;
        snprintf(c->keys[i], sizeof(c->keys[i]), "errors.%d", layer - 1);
        snprintf(c->titles[i], sizeof(c->titles[i]), "error after %d", layer);
        c->list[c->count++] = (struct column){c->keys[i], c->titles[i], 5};
    }
    add_columns(c, last_columns, ARRAY_LEN(last_columns));
}

static json_t *gemms_json(unsigned gemms)
{
    SCOPED_BUF text = BUF_INIT;
    gemms_text(gemms, " ", &text);
    return json_string(text.ptr);
}

/* A list of layers, of an object with the share of each tensor in e4m3. */
static json_t *saturated_json(const struct accuracy *a, int layers, double *most)
{
    json_t *list = json_array();
    *most = 0;
    for (int l = 0; l < layers; l++) {
        json_t *layer = json_object();
        for (int g = 0; g < GEMM_COUNT; g++)
            if ((a->gemms >> g & 1) != 0) {
                json_object_set_new(layer, gemm_inputs[g], json_real(a->saturated[l][g]));
                *most = fmax(*most, a->saturated[l][g]);
            }
        json_array_append_new(list, layer);
    }
    return list;
}

static json_t *row_json(const struct accuracy *a, int layers)
{
    double most;
    json_t *errors = json_array(), *saturated = saturated_json(a, layers, &most);
    for (int l = 0; l < layers; l++)
        json_array_append_new(errors, json_number(a->errors[l]));
    const char *scales = a->gemms == 0 ? NULL : a->by_column ? "column" : "tensor";
    return json_pack("{ss so ss? ss? so so so so so so so}", "precision", a->precision, "gemms",
                     gemms_json(a->gemms), "weight_scales", scales, "beside",
                     a->gemms != 0 ? a->beside : NULL, "errors", errors, "cosine_mean",
                     json_number(a->cosine_mean), "cosine_least", json_number(a->cosine_least),
                     "sentence_cosine", json_number(a->sentence_cosine), "agreement",
                     json_number(a->agreement), "saturated_most",
                     a->gemms != 0 ? json_real(most) : json_null(), "saturated", saturated);
}

static void print(const struct options *o, const struct accuracy_list *list, int layers)
{
    struct columns columns;
    struct output out;
    make_columns(&columns, layers);
    output_begin(&out, o->format, columns.list, columns.count);
    for (int i = 0; i < list->count; i++)
        output_row(&out, row_json(&list->items[i], layers));
    output_end(&out);
}

/* All that fp8 does not store in e4m3 is of one of these types, and is as here. */
static void warn_of_overflow(const struct options *o, const struct accuracy_list *list, int layers)
{
    for (int i = 0; i < list->count; i++) {
        const struct accuracy *a = &list->items[i];
        int l = 0;
        while (l < layers && isfinite(a->errors[l]))
            l++;
        if (l < layers && a->gemms == 0)
            note(o, "warning: %s: values of layer %d are NaN or infinite: the model overflows it",
                 a->precision, l);
    }
}

/* Of all four GEMMs by one scale a tensor. */
static void warn_of_saturation(const struct options *o, const struct accuracy_list *list,
                               int layers)
{
    for (int i = 0; i < list->count; i++) {
        const struct accuracy *a = &list->items[i];
        if (a->gemms != (1 << GEMM_COUNT) - 1 || a->by_column)
            continue;
        for (int l = 0; l < layers; l++)
            for (int g = 0; g < GEMM_COUNT; g++)
                if (a->saturated[l][g] > SATURATED_MOST)
                    note(o,
                         "warning: layer %d: %.2g of '%s' is beyond e4m3's range; calibrate with "
                         "sentences that are more like these",
                         l, a->saturated[l][g], gemm_inputs[g]);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum dtype dtype_of(const struct options *o)
{
    return options_has(o, OPT(DTYPE)) ? o->dtype : DTYPE_FP16;
}

static int check(const struct options *o, struct status *st)
{
    if (dtypes[dtype_of(o)].bytes != 2)
        return status_set(st, STATUS_USAGE,
                          "-t is %s; expected fp16 or bf16, the type of all that fp8 has beside "
                          "e4m3",
                          dtypes[o->dtype].name);
    if (o->weights == NULL)
        return status_set(st, STATUS_USAGE,
                          "no weights: drawn ones say nothing about accuracy, because what a model "
                          "loses by rounding depends on the values that it has learned; give "
                          "--model with a directory that has weights, or --weights");
    if (o->input == NULL)
        return status_set(st, STATUS_USAGE,
                          "no sentences: fuseplan has no tokenizer; give --input FILE, which "
                          "fuseplan.write_rows(model, sentences, FILE) of the Python package "
                          "writes");
    if (o->precision != 0 && o->calibration == NULL)
        return status_set(st, STATUS_USAGE,
                          "--precision: GEMMs in e4m3 need scales; add --calibration FILE, which "
                          "fuseplan.calibrate() of Python writes");
    return 0;
}

/* What is read before anything runs. */
struct read {
    struct sentences sentences;
    struct trained *trained;
    struct calibration calibration;
    struct workload w;
};

static void read_release(struct read *r)
{
    calibration_release(&r->calibration);
    workload_release(&r->w);
    trained_close(r->trained);
    sentences_release(&r->sentences);
}

static int read_workload(const struct options *o, struct read *r, struct status *st)
{
    struct options of = *o; /* of the longest sentence, on no target */
    struct target_name target;
    of.given = (of.given | OPT(BATCH) | OPT(SEQ_LEN)) & ~OPT(DTYPE);
    of.batch = 1;
    of.seq_len = r->sentences.longest;
    if (workload_read(&of, &target, &r->w, st) != 0)
        return -1;
    if (r->w.mask_spec.path != NULL)
        return status_set(
            st, STATUS_USAGE,
            "--mask: an attention mask of a file is for one sequence length, and sentences have "
            "many; give one by its name");
    r->w.dtype = dtype_of(o); /* in which weights must be finite */
    return trained_check(r->trained, &r->w, st);
}

static int read_all(const struct options *o, struct read *r, struct status *st)
{
    if (sentences_read(o->input, &r->sentences, st) != 0 ||
        trained_open(o->weights, o->prefix, &r->trained, st) != 0 || read_workload(o, r, st) != 0)
        return -1;
    if (o->calibration != NULL)
        return calibration_open(o->calibration, r->trained, &r->w, &r->calibration, st);
    note(o, "no --calibration FILE, which has the scales of e4m3: fp8 is left out");
    return 0;
}

static int run(const struct options *o, struct status *st)
{
    SCOPED_BY(read_release) struct read r = {.trained = NULL};
    SCOPED_BY(accuracy_release) struct accuracy_list list = {.count = 0};
    const struct listener listener = {.report = progress_step};
    if (check(o, st) != 0 || read_all(o, &r, st) != 0 ||
        accuracy_run(&r.w, (struct inputs){.trained = r.trained}, &r.sentences,
                     o->calibration != NULL ? &r.calibration : NULL, o->precision, &listener, &list,
                     st) != 0)
        return -1;
    progress_hide();
    note(o, "sentences: %d, tokens: %lld, layers: %d", r.sentences.count,
         (long long)r.sentences.tokens, r.w.layers);
    warn_of_overflow(o, &list, r.w.layers);
    warn_of_saturation(o, &list, r.w.layers);
    print(o, &list, r.w.layers);
    return EXIT_SUCCESS;
}

const struct command cmd_accuracy = {
    .name = "accuracy",
    .operands = "",
    .summary = "Say what a model loses by fp16, bf16 and fp8, on its weights and real sentences",
    .options =
        OPTS_COMMON |
        (OPTS_WORKLOAD &
         ~(OPT(BATCH) | OPT(SEQ_LEN) | OPT(LENGTHS) | OPT(AVG_SEQ_LEN) | OPT(TARGET) | OPT(SEED))) |
        OPT(WEIGHTS) | OPT(PREFIX) | OPT(INPUT) | OPT(CALIBRATION) | OPT(PRECISION) | OPT(EVENTS),
    .about =
        "Runs sentences through all layers in double precision, and again with what plans store\n"
        "rounded to a type: sums stay in double.  fp8: the GEMMs named read input and weight in\n"
        "e4m3, by one power of two a tensor, or a column of the weight; all else is fp16, or of\n"
        "the type of -t.\n"
        "With --precision also the GEMMs that it names: each alone and all four are there anyway.\n"
        "An error is ||out - exact|| / ||exact|| of all tokens' rows after a layer.  Cosines are\n"
        "those of tokens' rows after the last layer, and of their means over each sentence.\n"
        "top-10 is the share of each sentence's ten nearest others that is the same.\n"
        "The files of --input and --calibration come from the Python package: docs/python.md.",
    .examples = "fuseplan accuracy --model DIR --input rows.safetensors   # needs a model\n"
                "fuseplan accuracy --model DIR --input rows.safetensors --calibration "
                "c.json   # needs a model",
    .run = run,
};
