fuseplan mask fixed -s 1024 --format json
