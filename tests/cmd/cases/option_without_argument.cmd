fuseplan bench 5 -b
