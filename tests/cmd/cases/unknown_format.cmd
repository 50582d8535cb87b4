fuseplan translate 5 --format xml
