fuseplan mask --help
