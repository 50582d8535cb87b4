#!/bin/sh
# products.sh BIN ROWS...: the GEMMs of `hopper_gemm` beside those of cuBLASLt, and with an epilogue beside the bare
# product.  A table in Markdown with the microseconds of the fastest schedules, then the geometric means of its ratios.
set -u
bin=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
for rows; do
  timeout 200 "$bin/cuda_segments" -m -i hopper_gemm -i library \
    -s 0-0,7-7,7-8,7-9,10-10,10-11,12-12,12-13,12-14 fp16 1 "$rows" full >"$dir/$rows" || failed=1
  tail -n 1 "$dir/$rows" >&2
  grep '^time,' "$dir/$rows" >>"$dir/times"
done

# In a line of $dir/times: time, type (batch, rows) mask, operators, implementation, schedule, median, low, high.
awk -F, '
  {
    rows = $3 + 0
    if (!(rows in seen)) order[++n] = rows
    seen[rows] = 1
    key = rows " " $4 " " $5
    if (!(key in us) || $7 < us[key]) us[key] = $7
  }
  function beside(group, operators, others, implementation,   a, b) {
    a = us[rows " " operators " hopper_gemm"]
    b = us[rows " " others " " implementation]
    if (!a || !b) return
    printf "| %d | %s | %.2f | %s by %s | %.2f | %.3f |\n", rows, operators, a, others, implementation, b, a / b
    sum[group] += log(a / b)
    count[group]++
  }
  END {
    print "| rows | operators | us | beside | us | ratio |\n|---|---|---|---|---|---|"
    for (i = 1; i <= n; i++) {
      rows = order[i]
      library = "cuBLASLt, " (rows < 4096 ? "fewer than 4096 rows" : "4096 rows and more")
      split("0-0 7-8 10-11 12-13", products, " ")
      for (k = 1; k <= 4; k++) beside(library, products[k], products[k], "library")
      if (rows < 4096) continue # epilogues of small GEMMs are not the question
      beside("bias and residual", "7-8", "7-7", "hopper_gemm")
      beside("bias and residual", "12-13", "12-12", "hopper_gemm")
      beside("bias and GELU", "10-11", "10-10", "hopper_gemm")
      beside("bias, residual and layernorm", "7-9", "7-7", "hopper_gemm")
      beside("bias, residual and layernorm", "12-14", "12-12", "hopper_gemm")
    }
    for (group in sum) printf "%s: %.3f times as long, %d ratios\n", group, exp(sum[group] / count[group]), count[group]
  }' "$dir/times"
exit $failed
