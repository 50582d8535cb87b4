/* A headless Chromium, driven by the DevTools protocol over two pipes: JSON messages that end with
 * NUL. https://chromedevtools.github.io/devtools-protocol/ */
#ifndef FUSEPLAN_TESTS_PAGE_BROWSER_H
#define FUSEPLAN_TESTS_PAGE_BROWSER_H

#include "base/base.h"

#include <jansson.h>
#include <sys/types.h>

/* The program to run: $CHROMIUM, else chromium; null if there is none. */
const char *browser_program(void);

struct browser {
    pid_t pid;
    int to, from; /* pipes */
    int last_id;
    char session[64]; /* of the page */
    struct buf input; /* received, from a message's beginning */
    json_t *events;   /* received and not yet taken: an array of {method, params} */
};

/* Starts a browser with an empty page.  dir: where it keeps its profile. */
void browser_start(struct browser *b, const char *program, const char *dir);
void browser_stop(struct browser *b);

/* Calls a method of the page and returns its result, which the caller releases.  params is taken
 * over. The test fails if the method does. */
json_t *browser_call(struct browser *b, const char *method, json_t *params);

/* Waits for an event of the page, which the caller releases. */
json_t *browser_wait(struct browser *b, const char *method);

/* How many events of a method have come since the last browser_open(). */
int browser_count(const struct browser *b, const char *method);

/* Loads a file and waits until it is loaded. */
void browser_open(struct browser *b, const char *path);

/* The value of an expression of JavaScript; the caller releases it.  The test fails if
 * it throws. */
json_t *browser_value(struct browser *b, const char *expression);

/* Moves the mouse to a place of the window; presses and releases its button there. */
void browser_move(struct browser *b, double x, double y);
void browser_click(struct browser *b, double x, double y);
void browser_key(struct browser *b, const char *key);

#endif
