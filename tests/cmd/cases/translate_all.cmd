fuseplan translate 0..65535 | wc -l
fuseplan translate all | cut -d' ' -f3- | sort -u | wc -l
