fuseplan help search
