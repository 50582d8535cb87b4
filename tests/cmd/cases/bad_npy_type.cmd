# What NumPy makes of whole numbers.
{
  printf '\223NUMPY\001\000\166\000'
  printf "%-117s\n" "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }"
  head -c 32 /dev/zero
} >mask.npy
fuseplan mask file:mask.npy -s 2
