fuseplan search -b 1 -s 8 --again --retry-failed
