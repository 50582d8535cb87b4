fuseplan db infos
