#!/bin/sh
# pictures.sh SHOOT PAGE: takes the pictures of docs/report.md from a page of `fuseplan report`.
set -eu
shoot=$1 page=$2
pictures=$(dirname "$0")/../../docs/pictures

# take NAME ARGUMENT...: the tool prints base64 among the lines about its test
take() {
  name=$1
  shift
  "$shoot" "$page" "$@" | grep -x '[A-Za-z0-9+/=]*' | base64 -d >"$pictures/$name.png"
}

shown="at('plans').scrollIntoView({ behavior: 'instant' }); scrollBy({ top: -10, behavior: 'instant' });"
take report-light 1000 900 light
take report-dark 1000 780 dark "$shown show(charts[1],
  charts[1].spec.points.findIndex((point) => plans.value[point.plan] === 41115)); 0"
take report-phone 390 844 light "$shown choosePlan(best.value); 0"
