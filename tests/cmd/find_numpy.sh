#!/bin/sh
# find_numpy.sh: prints a python3 that has NumPy: that of PATH, else Debian's.  Fails where none has.
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then
    echo "$python"
    exit
  fi
done
exit 1
