# Without stored times the kernels are explained all the same; 'best' needs some.
fuseplan explain 32769 --target cpu -b 2 -s 64 -m strided:t=8 --lengths 64,40
fuseplan explain best --target cpu -b 1 -s 64 --db k.db
