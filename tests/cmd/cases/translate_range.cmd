fuseplan translate 43688..43691 all | head -n 6
