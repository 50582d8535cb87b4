fuseplan mask sliding:w=32 -s 1024 | head -n 3
