/* search: picks the plans worth measuring and stores what was measured.
 *
 * A strategy sees only an evaluator, so it runs on a real target, on a recorded space or on a
 * made-up one.  Functions pass plans as struct plan; values occur only in rows, files and options.
 * To add a strategy: a function and a row in strategies[] (strategy.c). */
#pragma once

#include "search/close.h"
#include "search/explain.h"
#include "search/precision.h"
#include "search/space.h"
#include "search/strategy.h"
#include "search/study.h"
#include "search/sweep.h"
#include "search/tune.h"
