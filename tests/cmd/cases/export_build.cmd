# --build runs make, whose end counts, also where the program that started this one ignores the ends of children.
export='fuseplan export 41115 -b 1 -s 4 -H 1 -W 4 -L 1 -m causal --target cpu -q -o lib --build'
mkdir bin
cat >bin/make <<'END'
#!/bin/sh
echo "make $*"
exit "$CODE"
END
chmod +x bin/make
PATH=$PWD/bin:$PATH
for CODE in 0 2; do
  export CODE
  timeout 60 $export; echo $?
  timeout 60 env --ignore-signal=CHLD $export; echo $?
done
