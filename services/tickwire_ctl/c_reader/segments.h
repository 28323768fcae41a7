/* ---- Segments: opening, checks, locks. Names that begin with tw_ are this header's own. ------------------------- */

/* One mapped shared-memory segment. */
typedef struct tw_segment {
    unsigned char *bytes; /* NULL = not mapped */
    size_t size;
    int fd;
    ino_t inode;
    char name[64];
} tw_segment;

/* A reader of the signals ring. Belongs to one thread. No pointer into it may outlive `tickwire_reader_close`. */
typedef struct tickwire_reader {
    uint64_t cursor;  /* sequence of the next record to be read */
    uint64_t lost;    /* records lost since open, exact */
    int64_t spin_ns;  /* how long `tickwire_reader_wait` spins before it sleeps; yours to change */
    char error[256];  /* why the last call failed: subject, rule, finding */
    char prefix[TW_PREFIX_BYTES + 1];
    char name[TICKWIRE_RING_NAME_BYTES + 1];
    tw_segment data;    /* mapped read-only */
    tw_segment control; /* cursor, liveness lock, park_request */
    tw_segment symbols; /* mapped by `tickwire_symbols_json` */
    size_t entry;       /* offset of this reader's entry in `control`, 0 = unregistered */
    int64_t looked_ns;  /* when the name's inode was compared last */
} tickwire_reader;

static inline uint64_t tw_load(const unsigned char *address)
{
    return __atomic_load_n((const uint64_t *)(const void *)address, __ATOMIC_RELAXED);
}

static inline uint64_t tw_load_acquire(const unsigned char *address)
{
    return __atomic_load_n((const uint64_t *)(const void *)address, __ATOMIC_ACQUIRE);
}

static inline uint32_t tw_load_32(const unsigned char *address)
{
    return __atomic_load_n((const uint32_t *)(const void *)address, __ATOMIC_ACQUIRE);
}

static inline void tw_store(unsigned char *address, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)address, value, __ATOMIC_RELEASE);
}

static inline void tw_store_32(unsigned char *address, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)address, value, __ATOMIC_RELEASE);
}

static inline int64_t tw_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Keep the text of an error and return its code. */
__attribute__((format(printf, 3, 4))) static inline int tw_fail(
    tickwire_reader *reader, int code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(reader->error, sizeof reader->error, format, values);
    va_end(values);
    return code;
}

static inline void tw_path(const tw_segment *segment, char path[80])
{
    snprintf(path, 80, "/dev/shm/%s", segment->name);
}

/* Map `<prefix>.<rest>`; 0, TICKWIRE_NOT_FOUND or TICKWIRE_ERROR. */
static inline int tw_open(tickwire_reader *reader, tw_segment *segment, const char *rest, int writable)
{
    char path[80];
    struct stat status;
    int code = 0;
    void *map;

    snprintf(segment->name, sizeof segment->name, "%s.%s", reader->prefix, rest);
    tw_path(segment, path);
    segment->fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
    if (segment->fd < 0 && errno == ENOENT)
        return tw_fail(reader, TICKWIRE_NOT_FOUND,
            "segment '%s': must exist in /dev/shm, does not; is Tickwire running with this prefix?", segment->name);
    if (segment->fd < 0)
        return tw_fail(reader, TICKWIRE_ERROR, "segment '%s': uid %ld must be allowed to %s it: %s", segment->name,
            (long)geteuid(), writable ? "read and write" : "read", strerror(errno));
    if (fstat(segment->fd, &status) != 0 || !S_ISREG(status.st_mode))
        code = tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must be a file of /dev/shm", segment->name);
    else if (status.st_mode & S_IWOTH)
        code = tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must not be writable by others, has mode %o",
            segment->name, (unsigned)(status.st_mode & 07777));
    else if (status.st_size == 0)
        code = tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must not be empty; remove it if its creator is dead",
            segment->name);
    if (code == 0) {
        map = mmap(NULL, (size_t)status.st_size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_POPULATE,
            segment->fd, 0);
        if (map != MAP_FAILED) {
            segment->bytes = (unsigned char *)map;
            segment->size = (size_t)status.st_size;
            segment->inode = status.st_ino;
            return 0;
        }
        code = tw_fail(reader, TICKWIRE_ERROR, "segment '%s': cannot be mapped: %s", segment->name, strerror(errno));
    }
    close(segment->fd);
    return code;
}

/* Unmap and close; the kernel frees the locks. Removes nothing. */
static inline void tw_close(tw_segment *segment)
{
    if (segment->bytes == NULL)
        return;
    munmap(segment->bytes, segment->size);
    close(segment->fd);
    segment->bytes = NULL;
}

/* Take (F_WRLCK) or give back (F_UNLCK) an open-file-description lock of one byte; 1 = done, 0 = another holds it. */
static inline int tw_lock(const tw_segment *segment, size_t offset, short type)
{
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)offset;
    lock.l_len = 1;
    return fcntl(segment->fd, F_OFD_SETLK, &lock) == 0;
}

/* Compare the data segment's header with this header file; 0 or TICKWIRE_ERROR, naming the first field that differs. */
static inline int tw_check_header(tickwire_reader *reader)
{
    const tw_segment *data = &reader->data;
    const struct {
        const char *field;
        uint64_t expected;
        size_t offset;
        int is_64;
    } fields[] = {
        {"version", TICKWIRE_RING_LAYOUT_VERSION, TICKWIRE_RING_VERSION_AT, 0},
        {"header_bytes", TICKWIRE_RING_HEADER_BYTES, TICKWIRE_RING_HEADER_BYTES_AT, 0},
        {"capacity", TICKWIRE_SIGNALS_CAPACITY, TICKWIRE_RING_CAPACITY_AT, 1},
        {"slot_bytes", TICKWIRE_SIGNALS_SLOT_BYTES, TICKWIRE_RING_SLOT_BYTES_AT, 0},
        {"mode", TICKWIRE_SIGNALS_MODE, TICKWIRE_RING_MODE_AT, 0},
        {"max_consumers", TICKWIRE_SIGNALS_MAX_CONSUMERS, TICKWIRE_RING_MAX_CONSUMERS_AT, 0},
        {"data_offset", TICKWIRE_RING_HEADER_BYTES, TICKWIRE_RING_DATA_OFFSET_AT, 1},
        {"schema_hash", TICKWIRE_SIGNALS_SCHEMA_HASH, TICKWIRE_RING_SCHEMA_HASH_AT, 1},
    };
    const size_t size = TICKWIRE_RING_HEADER_BYTES + (size_t)TICKWIRE_SIGNALS_CAPACITY * TICKWIRE_SIGNALS_SLOT_BYTES;
    uint64_t found;
    size_t i;

    if (data->size < TICKWIRE_RING_HEADER_BYTES)
        return tw_fail(reader, TICKWIRE_ERROR, "ring '%s': must be at least %d bytes, is %zu", data->name,
            TICKWIRE_RING_HEADER_BYTES, data->size);
    found = tw_load_acquire(data->bytes + TICKWIRE_RING_MAGIC_AT);
    if (found != TICKWIRE_RING_MAGIC)
        return tw_fail(reader, TICKWIRE_ERROR, "ring '%s': is no Tickwire ring (magic 0x%llx)", data->name,
            (unsigned long long)found);
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const unsigned char *word = data->bytes + fields[i].offset;
        found = fields[i].is_64 ? tw_load(word) : tw_load_32(word);
        if (found != fields[i].expected)
            return tw_fail(reader, TICKWIRE_ERROR,
                "ring '%s': %s must be 0x%llx, is 0x%llx; compile with the tickwire.h of the running release",
                data->name, fields[i].field, (unsigned long long)fields[i].expected, (unsigned long long)found);
    }
    if (data->size != size)
        return tw_fail(
            reader, TICKWIRE_ERROR, "ring '%s': must be %zu bytes, is %zu", data->name, size, data->size);
    return 0;
}
