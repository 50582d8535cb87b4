fuseplan translate 41115 21845 --format csv
