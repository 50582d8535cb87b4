# What the user's shell says of threads does not change what a plan runs with.
fuseplan doctor | grep ' threads ' >plain
OMP_PROC_BIND=true OMP_NUM_THREADS=1 fuseplan doctor | grep ' threads ' | cmp - plain
