fuseplan mask strided -s 512
fuseplan mask strided -s 512 -q --svg s.svg >out; grep -c '<g transform' s.svg
