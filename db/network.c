#include "db/db_int.h"

#include <sys/vfs.h>

const char *db_network(const char *path)
{
    static const struct {
        unsigned magic; /* of statfs(2) */
        const char *name;
    } known[] = {{0x6969, "NFS"},        {0xfe534d42, "SMB2"}, {0xff534d42, "CIFS"},
                 {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
                 {0x00c36400, "CephFS"}, {0x5346414f, "AFS"},  {0xaad7aaea, "PanFS"}};
    struct statfs info;
    if (statfs(path, &info) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((unsigned)info.f_type == known[i].magic)
            return known[i].name;
    return NULL;
}

int db_refuse_network(const char *path, const char *dir, struct status *st)
{
    const char *network = db_network(dir);
    if (network == NULL)
        return 0;
    return status_set(st, STATUS_DATABASE,
                      "database '%s' lies on %s, where hosts that write would damage it: name a "
                      "file on a disk of this machine with --db or FUSEPLAN_DB; 'fuseplan db "
                      "export' writes its results as text anywhere",
                      path, network);
}
