#!/bin/sh
# figures.sh FUSEPLAN: writes docs/measurements/replay.md and replay.svg from the recorded spaces in tests/data.
# What a run gives stays in build/figures/, and is run again once the program or the space is newer.
set -eu
fuseplan=$1
cd "$(dirname "$0")/../.."
runs=build/figures
out=docs/measurements
mkdir -p "$runs"

ALL='guided additive xgb random annealing genetic reward'
LESIONS='guided-posterior guided-bound guided-regressor guided-classifier guided-models'

# replay KIND STRATEGIES SEEDS OPTION...: a CSV file for each strategy and space; a tenth of the seeds on
# spaces recorded in part, which say less.
replay() {
  kind=$1 strategies=$2 all_seeds=$3
  shift 3
  for space in tests/data/*.space.gz; do
    case $space in
    *-part.*) seeds=$((all_seeds / 10)) ;;
    *) seeds=$all_seeds ;;
    esac
    for strategy in $strategies; do
      csv=$runs/$kind.$strategy.$(basename "$space" .space.gz).csv
      [ -z "$(find "$runs" -path "$csv" -newer "$fuseplan" -newer "$space")" ] || continue
      echo "replaying $strategy on $space $*" >&2
      "$fuseplan" replay -q "$space" --strategy "$strategy" --seeds "$seeds" --format csv "$@" \
        >"$runs/partial"
      mv "$runs/partial" "$csv"
    done
  done
}

# table KIND: for each space a table of mean and 95th percentile of the regret in % after so many plans.
table() {
  awk -F, '
    FNR == 1 { next }
    !($1 in seen) { seen[$1] = 1; spaces[++n] = $1; how[$1] = $3 }
    !(($1, $4) in of) { of[$1, $4] = 1; order[$1, ++rows[$1]] = $4 }
    !(($1, $5) in at) { at[$1, $5] = 1; budgets[$1, ++columns[$1]] = $5 }
    { cell[$1, $4, $5] = sprintf("%6.2f %5.2f", 100 * $7, 100 * $9)
      to[$1, $4] = $10; s3[$1, $4] = $12; s1[$1, $4] = $13; score[$1, $4] = $3 == "whole" ? $14 : ""
      if ($11 != "") timed[$1] = 1 }
    function known(format, value) { return value == "" ? "-" : sprintf(format, value) }
    END {
      for (i = 1; i <= n; i++) {
        s = spaces[i]
        printf "\n`%s`, recorded %s:\n\n    %-18s", s, how[s], "plans"
        for (k = 1; k <= columns[s]; k++) printf "%14s", budgets[s, k]
        printf "%8s%8s%s\n", "to 1 %", "score", timed[s] ? "  s to 3 %  s to 1 %" : ""
        for (r = 1; r <= rows[s]; r++) {
          t = order[s, r]
          printf "    %-18s", t
          for (k = 1; k <= columns[s]; k++) printf "%14s", cell[s, t, budgets[s, k]]
          printf "%8s%8s", known("%d", to[s, t]), known("%.3f", score[s, t])
          if (timed[s]) printf "%10s%10s", known("%.1f", s3[s, t]), known("%.1f", s1[s, t])
          print ""
        }
      }
    }' "$@"
}

# files KIND STRATEGIES: the CSV files of a kind, in the order of the spaces and strategies.
files() {
  for space in tests/data/*.space.gz; do
    for strategy in $2; do
      echo "$runs/$1.$strategy.$(basename "$space" .space.gz).csv"
    done
  done
}

# chart FILE...: a panel for each space: the mean regret over seconds, or over plans where there are none.
chart() {
  awk -F, '
    FNR == 1 { next }
    !($1 in seen) { seen[$1] = 1; spaces[++n] = $1 }
    !($4 in known) { known[$4] = 1; names[++m] = $4 }
    { i = ++points[$1, $4]; y[$1, $4, i] = 100 * $7
      timed[$1] = $11 != ""
      x[$1, $4, i] = timed[$1] ? $11 : $5
      if (!($1 in least) || x[$1, $4, i] < least[$1]) least[$1] = x[$1, $4, i]
      if (x[$1, $4, i] > most[$1]) most[$1] = x[$1, $4, i]
      if (y[$1, $4, i] > top[$1]) top[$1] = y[$1, $4, i] }
    function px(s, v) { return 60 + 420 * (most[s] > least[s] ? log(v / least[s]) / log(most[s] / least[s]) : 0) }
    function py(s, v, above) { return above + 170 - 140 * v / (top[s] > 0 ? top[s] : 1) }
    END {
      split("#0b6e4f #c1121f #6a4c93 #6c757d #e07a00 #1d70b8 #8d6a00", colours, " ")
      printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", 230 * n
      print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
      for (i = 1; i <= n; i++) {
        s = spaces[i]; above = 230 * (i - 1)
        printf "<text x=\"60\" y=\"%d\">%s</text>\n", above + 18, s
        printf "<path d=\"M60 %dV%dH480\" fill=\"none\" stroke=\"black\"/>\n", above + 30, above + 170
        printf "<text x=\"54\" y=\"%d\" text-anchor=\"end\">%.3g</text>\n", above + 36, top[s]
        printf "<text x=\"54\" y=\"%d\" text-anchor=\"end\">0</text>\n", above + 174
        printf "<text x=\"60\" y=\"%d\">%.3g</text>\n", above + 186, least[s]
        printf "<text x=\"480\" y=\"%d\" text-anchor=\"end\">%.3g</text>\n", above + 186, most[s]
        printf "<text x=\"270\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", above + 200, timed[s] ? "seconds, stage 1 included" : "plans"
        printf "<text x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\" text-anchor=\"middle\">mean regret, %%</text>\n", above + 100, above + 100
        for (k = 1; k <= m; k++) {
          t = names[k]
          if (points[s, t] == 0) continue
          line = ""
          for (p = 1; p <= points[s, t]; p++)
            line = line sprintf("%s%.1f %.1f", p == 1 ? "M" : "L", px(s, x[s, t, p]), py(s, y[s, t, p], above))
          printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", line, colours[k]
          printf "<text x=\"496\" y=\"%d\" fill=\"%s\">%s</text>\n", above + 30 + 18 * k, colours[k], t
        }
      }
      print "</svg>"
    }' "$@"
}

replay plain "$ALL $LESIONS" 100 --budget 128
replay noise "guided additive $LESIONS" 30 --budget 64 --noise 0.05,0.05
replay blind "$ALL $LESIONS" 30 --budget 64 --no-segment-times

# names of files without blanks
# shellcheck disable=SC2046
{
  cat <<'EOF'
# Strategies on the recorded spaces

`./run figures` writes this page from the [recorded spaces](../recorded-spaces.md) in `tests/data/`, without their
device. Cells are the mean and the 95th percentile of the *regret* in %: how much slower the plan chosen is than the best
plan of the space. `to 1 %` is the number of plans after which half of the searches have one within 1 %, `score` what
[`fuseplan replay`](../cli.md#replay) says. Columns of seconds are of files of version 2 alone; they include stage 1.
The baselines count as plans. Spaces recorded in part have a tenth of the seeds. They have no score, for what was
recorded of them is no fair sample. What follows from the figures is in
[the search](../search.md#what-each-signal-is-worth).

![Mean regret](replay.svg)

## All strategies, 100 seeds
EOF
  table $(files plain "$ALL")
  cat <<'EOF'

## guided less one signal each, 100 seeds

Of the five lesser forms, `guided-posterior` lacks both posteriors. So it has neither sums nor lower bounds, and its
models choose all plans. `guided-bound` lacks the lower bounds. `guided-regressor` and `guided-classifier` lack one model
each, `guided-models` both. In these four, sums take the place of what is left out.
EOF
  table $(files plain "guided additive $LESIONS")
  cat <<'EOF'

## With noise of 5 % on segments and plans, 30 seeds
EOF
  table $(files noise "guided additive $LESIONS")
  cat <<'EOF'

## Without the times of segments, 30 seeds
EOF
  table $(files blind "$ALL $LESIONS")
} >"$runs/replay.md"
# shellcheck disable=SC2046
chart $(files plain "$ALL") >"$runs/replay.svg"
cp "$runs/replay.md" "$runs/replay.svg" "$out/"
