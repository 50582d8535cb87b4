/* A layer between SQLite and its own file layer (VFS) that gives each page of a database a checksum
 * in its last PAGE_SUM_BYTES bytes, which SQLite leaves free, and verifies it when the page is
 * read. The method is that of SQLite's ext/misc/cksumvfs.c; the hash is XXH3 with the page's number
 * as its seed, so that a page in another's place is noticed too.
 *
 * SQLite always sees zeros there.  So pages on their way through the WAL, which has checksums of
 * its own, hold zeros, and zeros in the file mean that another program copied the page from a WAL
 * or rebuilt the file: such a page is accepted, and gets its checksum when it is written again. */
#include "db/db_int.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 100, PAGE_BYTES_MAX = 65536 };

/* In front of the file of SQLite's own layer, which follows in the same block. */
struct page_file {
    sqlite3_file base;
    int page_bytes;   /* 0: the file has no checksums, or nothing is in it yet */
    int64_t bad_page; /* the last one that did not match its checksum; 0: none */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((struct page_file *)file + 1);
}

/* ---- checksums ------------------------------------------------------------------------------- */

/* Reads from page 1 whether the file has checksums: bytes 16 and 17 are the size of a page, byte 20
 * says how many bytes at its end are free. */
static void note_header(struct page_file *f, const unsigned char *header, int len)
{
    if (len < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) != 0)
        return;
    int bytes = header[16] << 8 | header[17];
    bytes = bytes == 1 ? PAGE_BYTES_MAX : bytes;
    f->page_bytes = header[20] == PAGE_SUM_BYTES ? bytes : 0;
}

/* Bytes of page 1 that SQLite's backup changes in a copy: whether the journal is a WAL, counters of
 * changes and of changes of the schema, and the version that wrote last. */
static const struct {
    int at, count;
} not_of_the_sum[] = {{18, 2}, {24, 4}, {40, 4}, {92, 8}};

static bool is_page(const struct page_file *f, int len, sqlite3_int64 at)
{
    return f->page_bytes > 0 && len == f->page_bytes && at % len == 0;
}

/* Never 0, which stands for none. */
static uint64_t sum_of(const unsigned char *page, int len, sqlite3_int64 at)
{
    unsigned char first[PAGE_BYTES_MAX];
    size_t count = (size_t)(len - PAGE_SUM_BYTES);
    if (at == 0) {
        memcpy(first, page, count);
        for (size_t i = 0; i < ARRAY_LEN(not_of_the_sum); i++)
            memset(first + not_of_the_sum[i].at, 0, (size_t)not_of_the_sum[i].count);
    }
    uint64_t sum = hash_number(at == 0 ? first : page, count, (uint64_t)(at / len));
    return sum != 0 ? sum : 1;
}

static int read_file(sqlite3_file *file, void *out, int len, sqlite3_int64 at)
{
    struct page_file *f = (struct page_file *)file;
    int result = real_of(file)->pMethods->xRead(real_of(file), out, len, at);
    if (result != SQLITE_OK)
        return result;
    if (at == 0)
        note_header(f, out, len);
    if (!is_page(f, len, at))
        return SQLITE_OK;
    uint64_t stored;
    unsigned char *sum = (unsigned char *)out + len - PAGE_SUM_BYTES;
    memcpy(&stored, sum, sizeof(stored));
    if (stored != 0 && stored != sum_of(out, len, at)) {
        f->bad_page = at / len + 1;
        return SQLITE_IOERR_DATA;
    }
    memset(sum, 0, PAGE_SUM_BYTES);
    return SQLITE_OK;
}

static int write_file(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct page_file *f = (struct page_file *)file;
    sqlite3_file *real = real_of(file);
    unsigned char page[PAGE_BYTES_MAX];
    if (at == 0)
        note_header(f, data, len);
    if (!is_page(f, len, at))
        return real->pMethods->xWrite(real, data, len, at);
    memcpy(page, data, (size_t)len);
    uint64_t sum = sum_of(page, len, at);
    memcpy(page + len - PAGE_SUM_BYTES, &sum, sizeof(sum));
    return real->pMethods->xWrite(real, page, len, at);
}

/* Another process may have given the file checksums since page 1 was read from it: pages of a WAL
 * that is about to be copied into the file must get theirs. */
static void read_header(sqlite3_file *file)
{
    unsigned char header[HEADER_BYTES];
    sqlite3_file *real = real_of(file);
    if (real->pMethods->xRead(real, header, sizeof(header), 0) == SQLITE_OK)
        note_header((struct page_file *)file, header, sizeof(header));
}

/* ---- what SQLite's own layer does ------------------------------------------------------------ */

#define PASS(name, method, parameters, arguments)                                                  \
    static int name parameters                                                                     \
    {                                                                                              \
        return real_of(file)->pMethods->method arguments;                                          \
    }
PASS(close_file, xClose, (sqlite3_file * file), (real_of(file)))
PASS(truncate_file, xTruncate, (sqlite3_file * file, sqlite3_int64 size), (real_of(file), size))
PASS(sync_file, xSync, (sqlite3_file * file, int flags), (real_of(file), flags))
PASS(file_bytes, xFileSize, (sqlite3_file * file, sqlite3_int64 *out), (real_of(file), out))
PASS(lock_file, xLock, (sqlite3_file * file, int level), (real_of(file), level))
PASS(unlock_file, xUnlock, (sqlite3_file * file, int level), (real_of(file), level))
PASS(check_reserved_lock, xCheckReservedLock, (sqlite3_file * file, int *out), (real_of(file), out))
PASS(sector_bytes, xSectorSize, (sqlite3_file * file), (real_of(file)))
PASS(map_shared, xShmMap,
     (sqlite3_file * file, int region, int size, int extend, void volatile **out),
     (real_of(file), region, size, extend, out))
PASS(lock_shared, xShmLock, (sqlite3_file * file, int offset, int n, int flags),
     (real_of(file), offset, n, flags))
PASS(unmap_shared, xShmUnmap, (sqlite3_file * file, int delete), (real_of(file), delete))
#undef PASS

static void order_shared(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int control_file(sqlite3_file *file, int what, void *arg)
{
    if (what == SQLITE_FCNTL_CKPT_START)
        read_header(file);
    return real_of(file)->pMethods->xFileControl(real_of(file), what, arg);
}

/* Newer versions of SQLite read parts of pages if a file has this property. */
static int properties(sqlite3_file *file)
{
    enum { SUBPAGE_READ = 0x8000 };
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file)) & ~SUBPAGE_READ;
}

/* Version 2: without mapping the file into memory, where nothing could be verified. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_bytes,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_bytes,
    .xDeviceCharacteristics = properties,
    .xShmMap = map_shared,
    .xShmLock = lock_shared,
    .xShmBarrier = order_shared,
    .xShmUnmap = unmap_shared,
};

/* ---- the layer ------------------------------------------------------------------------------- */

/* Whether a file could not be made for want of room: SQLite tries other ways to open it then, and
 * tells how the last one failed. */
static _Thread_local bool no_room;

bool pages_no_room(void)
{
    return no_room;
}

/* Opens files for SQLite.  It would wait for ever to read a pipe that lies in the place of a
 * journal or a WAL. */
static int open_no_pipe(const char *path, int flags, int mode)
{
    struct stat info;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY, mode);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
        close(fd);
        errno = ENXIO;
        return -1;
    }
    if ((flags & O_CREAT) != 0)
        no_room = fd < 0 && (errno == ENOSPC || errno == EDQUOT);
    return fd;
}

/* A copy of SQLite's own layer but for what is set in pages_layer(). */
static sqlite3_vfs layer;
static sqlite3_vfs *own;

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
        return own->xOpen(own, path, file, flags, out);
    memset(file, 0, sizeof(struct page_file));
    int result = own->xOpen(own, path, real_of(file), flags, out);
    if (result == SQLITE_OK)
        file->pMethods = &methods;
    return result;
}

const char *pages_layer(void)
{
    static const char name[] = "fuseplan";
    if (own == NULL && (own = sqlite3_vfs_find(NULL)) != NULL) { /* null: SQLite has no memory */
        layer = *own;
        layer.pNext = NULL;
        layer.zName = name;
        layer.szOsFile += (int)sizeof(struct page_file);
        layer.xOpen = open_file;
        own->xSetSystemCall(own, "open", (sqlite3_syscall_ptr)open_no_pipe);
        sqlite3_vfs_register(&layer, 0);
    }
    return name;
}

/* The file of a database, if it has this layer; else null. */
static struct page_file *file_of(sqlite3 *handle)
{
    sqlite3_file *file = NULL;
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return file != NULL && file->pMethods == &methods ? (struct page_file *)file : NULL;
}

int64_t pages_bad(sqlite3 *handle)
{
    const struct page_file *f = file_of(handle);
    return f != NULL ? f->bad_page : 0;
}

int64_t pages_next_bad(sqlite3 *handle, int64_t page)
{
    enum { TRIES = 3 }; /* another process may just write the page */
    struct page_file *f = file_of(handle);
    unsigned char data[PAGE_BYTES_MAX];
    sqlite3_int64 bytes = 0;
    const int size = f != NULL ? f->page_bytes : 0;
    if (size == 0 || file_bytes(&f->base, &bytes) != SQLITE_OK)
        return 0;
    while (++page <= bytes / size) {
        int result = SQLITE_IOERR_DATA;
        for (int i = 0; i < TRIES && result == SQLITE_IOERR_DATA; i++) {
            if (i > 0)
                sqlite3_sleep(5);
            result = read_file(&f->base, data, size, (page - 1) * size);
        }
        if (result == SQLITE_IOERR_DATA)
            return page;
    }
    return 0;
}
