fuseplan help
