# Byte for byte the same for the same input.
fuseplan generate 41115 -b 2 -s 65 -m strided --target cpu -q -o a
fuseplan generate 41115 -b 2 -s 65 -m strided --target cpu -q -o b
diff -r a b && echo same
