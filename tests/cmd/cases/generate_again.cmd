small='-b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q'
generate() { fuseplan generate "$@" $small; echo "exit $?"; }
# What make built is replaced with the sources, and what has no successor goes.
generate 41115 -o g
touch g/plan g/segment_00_00_qkv_gemm.o
generate 43690 -o g
ls g | grep -c '^segment_'; ls g | grep -e '^plan$' -e '\.o$'
# A file of the user's, and one that was changed, stop it.
echo mine | tee g/example g/libmine.a >g/notes; echo '/* mine */' >>g/plan_b1_s4.c; ls g >before
generate 41115 -o g
tail -n 1 g/plan_b1_s4.c; ls g | cmp - before
# --force keeps the one and replaces the other.
generate 41115 -o g --force
cat g/notes g/example g/libmine.a; tail -n 1 g/plan_b1_s4.c; ls g | grep -c '^segment_'; rm -r g before
# Any name of a directory that is new or empty, but no link to none; nothing is left beside it.
for dir in pl2/../pl2 b/. link dangling; do
  mkdir empty; ln -s empty link; ln -s target dangling
  generate 41115 -o $dir
  rm link dangling
  for made in *; do [ -e $made/plans.c ] && echo "$made holds a plan" || ls -d $made; done
  rm -r *
done
mkdir here; cd here; generate 41115 -o .; ls plans.c; cd ..
rm here/plan.h; mkdir here/plan.h; generate 41115 -o here --force 2>&1 | sed "s/to '.*'here'/to 'here'/; s,'/.*/here','here',"; ls -A; rm -r here
generate 41115 -o -; ls
