/* wire: how the parent and its worker talk.
 *
 * Both sides link this folder; the worker links nothing else of its parent's side. */
#ifndef FUSEPLAN_BENCH_WIRE_H
#define FUSEPLAN_BENCH_WIRE_H

#include "bench/bench.h"

#include <jansson.h>

/* ---- message.c: what they say to each other -----------------------------------------------------
 *
 * One JSON object a line over a socket.  The parent sends a request, {"do": "open" | "measure" |
 * "dump" | "trace", ...}.  The worker answers with any number of events, {"event": "doing" |
 * "passed", ...}, and then one reply, {"reply": true, ...}. */

/* The worker's numbers of what it inherits: the socket, and the mask's bits as a file in memory. */
enum { WORKER_CHANNEL = 3, WORKER_MASK = 4 };

enum { MESSAGE_MAX_BYTES = 64 << 20 };

/* Writes one line; false where the other side is gone. */
bool message_send(int fd, const json_t *message);

/* Takes the first whole line out of received.  1: *out is a new reference; 0: no whole line yet;
 * -1: what came is no message. */
int message_take(struct buf *received, json_t **out);

/* A workload but for the bits of its mask, which travel apart. */
json_t *message_of_workload(const struct workload *w);

/* bits: the mask's, which out borrows.  Builds the block lists too. */
int message_to_workload(const json_t *m, uint64_t *bits, size_t bytes, struct workload *out,
                        struct status *st);

/* A choice by its segment and the names of its implementation and schedule: the reader derives the
 * rest. */
json_t *message_of_choice(const struct choice *c);
int message_to_choice(const json_t *m, enum target_kind target, struct choice *out,
                      struct status *st);

/* Appends what both sides call a choice in their messages: "segment 2-6 (generated)". */
void choice_name(const struct choice *c, struct buf *out);

json_t *message_of_inputs(struct inputs in);
int message_to_inputs(const json_t *m, struct inputs *out, struct status *st);

json_t *message_of_sampling(const struct sampling *s);
int message_to_sampling(const json_t *m, struct sampling *out, struct status *st);

json_t *message_of_trial(const struct trial *t);
int message_to_trial(const json_t *m, struct trial *out, struct status *st);

/* How a request ended, as its reply says. */
int message_status(const json_t *reply, struct status *st);

/* ---- conditions.c ---------------------------------------------------------------------------- */

/* Null where they are not known. */
json_t *message_of_conditions(const struct conditions *c);
void message_to_conditions(const json_t *m, struct conditions *out);

#endif
