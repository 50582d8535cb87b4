# The four examples of the notes that this tool grew out of.
fuseplan translate 0001101010101010 0000010101010101 0011111010010110 0101010101010101
