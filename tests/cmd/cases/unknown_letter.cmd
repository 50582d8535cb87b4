fuseplan bench 5 -z
