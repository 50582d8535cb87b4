/* wire: how the parent and its worker talk.
 *
 * Both sides link this folder.  The worker links nothing else of its parent's side. */
#pragma once

#include "bench/bench.h"
#include "bench/trained/trained.h"

#include <jansson.h>

/* ---- message.c: requests, events and replies ----------------------------------------------------
 *
 * One JSON object a line over a socket.  The parent sends a request, {"do": "begin" | "open" |
 * "measure" | "dump" | "stamps", ...}.  The worker answers with any number of events, {"event":
 * "doing" | "passed", ...}, and then one reply, {"reply": true, ...}.
 *
 * A candidate in a request is {"alone": bool, "packed": bool, "choices": [...]}: the parent makes
 * it of a struct candidate, or of one choice alone.  The worker trusts its parent in all requests.
 */

/* Descriptors that the worker inherits: the socket, and the mask's bits as a file in memory. */
enum { WORKER_CHANNEL = 3, WORKER_MASK = 4 };

enum { MESSAGE_MAX_BYTES = 64 << 20 };

/* Begins the line of stdout with which the worker's program answers a question on its command line,
 * as one JSON object.  Whatever else libraries print is no answer. */
#define WORKER_ANSWER "fuseplan-worker: answer "

/* What a request "begin" gives the worker as "token", and every message of the worker repeats: a
 * candidate runs in the worker's process and can write to its socket, but was not told
 * the token. */
enum { TOKEN_SIZE = 33 };

/* A message as one line of len bytes, without a NUL, which the caller frees; null where memory is
 * short. */
char *message_line(const json_t *message, size_t *len);

/* Writes one line, however long the other side takes; false where it is gone. */
bool message_send(int fd, const json_t *message);

/* Takes the first whole line out of received.  1: *out is its message, owned by the caller; 0: no
 * whole line yet; -1: the line is no JSON object, or longer than MESSAGE_MAX_BYTES. */
int message_take(struct buf *received, json_t **out);

/* A workload without the bits of its masks, which the worker reads from WORKER_MASK: those of each
 * kind of layers behind those of the kind before. */
json_t *message_of_workload(const struct workload *w);

/* bits: the masks', which out borrows.  Builds the block lists too.  The caller releases *out even
 * after a failure. */
int message_to_workload(const json_t *m, uint64_t *bits, struct workload *out, struct status *st);

/* A choice as its segment, the name of its implementation, the text of its schedule, and whether it
 * is stamped. */
json_t *message_of_choice(const struct choice *c);
int message_to_choice(const json_t *m, enum target_kind target, const struct chain *chain,
                      struct choice *out, struct status *st);

/* Appends the name of a choice in messages for people: "segment 2-6 (generated)". */
void choice_name(const struct choice *c, struct buf *out);

json_t *message_of_sampling(const struct sampling *s);
int message_to_sampling(const json_t *m, struct sampling *out, struct status *st);

/* Takes seconds that have passed off the limit, if there is one. */
void sampling_spend(struct sampling *s, double seconds);

json_t *message_of_trial(const struct trial *t);

/* STATUS_LAUNCH for times that cannot be, whatever a candidate did to the worker: none, if `how`
 * asks for samples, or one below 1 ns. */
int message_to_trial(const json_t *m, const struct sampling *how, struct trial *out,
                     struct status *st);

/* Sets *st to the status in a reply and returns 0 if that is STATUS_OK. */
int message_status(const json_t *reply, struct status *st);

/* ---- inputs.c -------------------------------------------------------------------------------- */

/* The receiver reads the file of trained weights itself.  Of a calibration it gets the scales
 * alone.  It releases *out, in any case. */
json_t *message_of_inputs(struct inputs in);
int message_to_inputs(const json_t *m, struct inputs *out, struct status *st);
void inputs_release(struct inputs *in);

/* ---- conditions.c ---------------------------------------------------------------------------- */

/* JSON's null where the conditions are not known. */
json_t *message_of_conditions(const struct conditions *c);
void message_to_conditions(const json_t *m, struct conditions *out);

/* ---- toolkit.c: where NVIDIA's CUDA toolkit is ----------------------------------------------- */

/* The directory that CUDA_HOME names, else CUDA_PATH, else /usr/local/cuda.  *by is the variable,
 * or null.  An empty variable counts as unset. */
const char *toolkit_root(const char **by);
