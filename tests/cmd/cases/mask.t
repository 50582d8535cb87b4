=== forms
$ fuseplan mask strided -s 12
mask      strided:t=3 at S=12
elements  35.4 % kept (51 of 144)
blocks    100.0 % of 64x64 keep a pair (1 of 1): 0 full, 1 partial
cover     none: no order of tokens needs fewer blocks

# . . . . . . . . . . .
# # . . . . . . . . . .
# # # . . . . . . . . .
# # # # . . . . . . . .
. # # # # . . . . . . .
. . # # # # . . . . . .
# . . # # # # . . . . .
. # . . # # # # . . . .
. . # . . # # # # . . .
# . . # . . # # # # . .
. # . . # . . # # # # .
. . # . . # . . # # # #

# kept  . not kept; a row is a query, a column a key
$ fuseplan mask causal -s 8 -b 3 --avg-seq-len 4 --seed 1 --format json
{
  "mask": "causal",
  "seq_len": 8,
  "batch": 3,
  "kept": 52,
  "element_share": 0.270833333,
  "blocks": 3,
  "blocks_full": 0,
  "blocks_partial": 3,
  "block_share": 1.0,
  "empty_rows": 0,
  "cover_blocks": null,
  "cover": null
}
$ fuseplan mask fixed -s 1024 --format csv
mask,seq_len,batch,kept,element_share,blocks,blocks_full,blocks_partial,block_share,empty_rows,cover_blocks,cover
fixed:t=32,1024,1,32768,0.03125,256,0,136,0.53125,0,45,"queries in order, keys with 28 summary columns first: 0 full and 45 partial blocks"
$ fuseplan mask fixed -s 1024 --format ndjson
{"mask":"fixed:t=32","seq_len":1024,"batch":1,"kept":32768,"element_share":0.03125,"blocks":256,"blocks_full":0,"blocks_partial":136,"block_share":0.53125,"empty_rows":0,"cover_blocks":45,"cover":"queries in order, keys with 28 summary columns first: 0 full and 45 partial blocks"}
$ fuseplan mask sliding:w=32 -s 1024 | head -n 3
mask      sliding:w=32 at S=1024
elements  6.2 % kept (65504 of 1048576)
blocks    18.0 % of 64x64 keep a pair (46 of 256): 0 full, 46 partial
$ fuseplan mask causal -s 2 --svg m.svg >/dev/null && cat m.svg
<svg xmlns="http://www.w3.org/2000/svg" width="768" height="800" viewBox="0 0 2 2.08333" shape-rendering="crispEdges">
<title>causal, 2 x 2</title>
<rect width="2" height="2" fill="#f4f4f4"/>
<g fill="#1f4e79">
<path d="M0 0h1v1h-1zM0 1h2v1h-2z" opacity="1"/>
</g>
<text x="0.0208333" y="2.05729" font-size="0.0416667" font-family="sans-serif">a row is a query, a column a key; the darker, the more pairs are kept</text>
</svg>
=== mask cover
$ fuseplan mask strided -s 512 | sed 8,38d
mask      strided:t=22 at S=512
elements  6.4 % kept (16737 of 262144)
blocks    56.2 % of 64x64 keep a pair (36 of 64): 0 full, 36 partial
cover     30 blocks in other orders of tokens
          queries and keys in order: 0 full and 15 partial blocks
          queries and keys by residue modulo 22: 0 full and 15 partial blocks

+ + + + + + + + + + + + + + + + + + + + + + + + + + + + + + + +

# all kept  + some  . none; a cell is 16x16 pairs, queries down, keys across
$ fuseplan mask strided -s 512 -q --svg s.svg >out; grep -c '<g transform' s.svg
2
=== words that are wrong
2$ fuseplan mask stridd -s 4
! fuseplan mask: unknown attention mask 'stridd'; did you mean 'strided'? the masks are full, causal, strided:t=N, fixed:t=N, sliding:w=N, sliding_causal:w=N, dilated:w=N,d=N, longformer:g=N,w=N, bigbird:g=N,w=N,n=N,seed=N, prefix:p=N, document:n=N, file:PATH
2$ fuseplan mask causal -s 4 --lengths 4 --avg-seq-len 2
! fuseplan mask: --lengths and --avg-seq-len are given at once; give one of them
2$ fuseplan mask causal -s 4 --npy none/m.npy
! fuseplan mask: --npy: cannot write 'none/m.npy': No such file or directory
2$ fuseplan mask causal -s 4 --npy m --svg ./m
! fuseplan mask: --svg: './m' is the file of --npy, too; name another one
2$ fuseplan mask causal -s 4 --npy m -q >/dev/null; fuseplan mask causal -s 4 --svg m --npy $PWD/m -q 2>&1 | sed "s|$PWD|DIR|"; fuseplan mask file:m -s 4 --npy m
fuseplan mask: --svg: 'm' is the file of --npy, too; name another one
! fuseplan mask: --npy: 'm' is a file that the command reads; name another one
$ fuseplan mask causal -s 4 --npy /dev/null --svg /dev/null -q >/dev/null
$ fuseplan mask causal -s 4 --npy - --svg ./- -q >/dev/null 2>&1; ls ./-
./-
=== mask npy again
$ fuseplan mask causal -s 3 --npy m.npy >/dev/null && od -A n -t x1 -j 128 m.npy && fuseplan mask file:m.npy -s 3 --format csv | tail -n 1 | cut -c -20
 01 00 00 01 01 00 01 01 01
causal,3,1,6,0.66666
! fuseplan: file:m.npy has the bits of the attention mask 'causal', and is taken for it
=== mask npy lengths
$ fuseplan mask causal -s 4 -b 2 --lengths 2,4 --npy m.npy -q && od -A d -t x1 -j 128 m.npy
mask      causal at S=4
elements  40.6 % kept (13 of 32)
blocks    100.0 % of 64x64 keep a pair (2 of 2): 0 full, 2 partial
cover     none: no order of tokens needs fewer blocks

# . . .
# # . .
. . . .
. . . .

# kept  . not kept; a row is a query, a column a key
0000128 01 00 00 00 01 01 00 00 00 00 00 00 00 00 00 00
0000144 01 00 00 00 01 01 00 00 01 01 01 00 01 01 01 01
0000160
=== files that are wrong
1$ fuseplan mask file:none.npy -s 4
! fuseplan mask: cannot read 'none.npy': No such file or directory
2$ fuseplan mask causal -s 4 --npy m.npy -q >/dev/null; fuseplan mask file:m.npy -s 5
! fuseplan mask: attention mask file 'm.npy': the array has shape (4,4), expected (5,5) or (1,5,5): give -s 4
$ head -c 66000 /dev/zero >large.npy
2$ fuseplan mask file:large.npy -s 4
! fuseplan mask: an attention mask is an array of bool (4,4) or (1,4,4): 'large.npy' is larger than the 65664 bytes expected at most
$ {
>   printf '\223NUMPY\001\000\166\000'
>   printf "%-117s\n" "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 2), }"
>   printf '\001\000\000\000'
> } >mask.npy; fuseplan mask file:mask.npy -s 2 >/dev/null
! fuseplan: rows of attention mask 'mask.npy' that keep no key: 1; their attention is zero
