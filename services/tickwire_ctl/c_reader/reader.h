/* ---- The reader. -------------------------------------------------------------------------------------------------
 *
 * I2  Read at cursor c: stamp = c + 1: copy relaxed words, acquire fence, stamp unchanged or discard. Stamp 1 to c: the
 *     record of an earlier lap, wait. Otherwise load `published` (acquire) and then the stamp again: still not c + 1 and
 *     published > c means lapped, else wait.
 * I4  Lapped: newest = max(published, stamp - 1 if stamp > 0); the cursor jumps to max(c + 1, newest - 3/4 capacity);
 *     lost = new - old, exact, counted once.
 * I7  `tickwire_reader_wait` compares the name's inode; nothing of a replaced ring is mixed with the new one.
 * I9  Parking: store park_request = 1 (seq_cst), look once more, sleep on the futex word. The producer, after
 *     publishing, fences seq_cst, swaps park_request to 0 and wakes all when it was 1. One of the two sees the other.
 */

/* Detach. Removes nothing. Harmless on a reader that failed to open or is closed. */
static inline void tickwire_reader_close(tickwire_reader *reader)
{
    tw_close(&reader->data);
    tw_close(&reader->control);
    tw_close(&reader->symbols);
    reader->entry = 0;
}

static inline int tw_attach(tickwire_reader *reader)
{
    int code = tw_open(reader, &reader->data, TICKWIRE_SIGNALS_NAME, 0);
    if (code == 0)
        code = tw_check_header(reader);
    if (code == 0)
        code = tw_open(reader, &reader->control, TICKWIRE_SIGNALS_NAME ".ctl", 1);
    if (code == 0 && reader->control.size < TICKWIRE_RING_CONTROL_BYTES)
        code = tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must be %d bytes, is %zu", reader->control.name,
            TICKWIRE_RING_CONTROL_BYTES, reader->control.size);
    if (code == 0
        && tw_load(reader->control.bytes + TICKWIRE_RING_CONTROL_GENERATION_AT)
            != tw_load(reader->data.bytes + TICKWIRE_RING_GENERATION_AT))
        code = tw_fail(reader, TICKWIRE_NOT_FOUND, "ring '%s': is just being replaced; try again", reader->data.name);
    if (code == 0) {
        reader->cursor = tw_load_acquire(reader->data.bytes + TICKWIRE_RING_PUBLISHED_AT);
        reader->looked_ns = tw_monotonic_ns();
        code = tw_register(reader);
    }
    if (code != 0)
        tickwire_reader_close(reader);
    return code;
}

/* Attach to `<prefix>.signals`; the first record to be read is the next one that is published.
 *
 * `name` is how operators see this reader, 1 to TICKWIRE_RING_NAME_BYTES bytes; one live process a name.
 * Returns 0, TICKWIRE_NOT_FOUND (try again later) or TICKWIRE_ERROR; the text is in `reader->error`. Does not wait.
 * Needs read access to the data segment and read and write access to the control segment: the ring's group has both.
 */
static inline int tickwire_reader_open(tickwire_reader *reader, const char *prefix, const char *name)
{
    const size_t prefix_bytes = strlen(prefix);
    const size_t name_bytes = strlen(name);

    memset(reader, 0, sizeof *reader);
    reader->spin_ns = TW_SPIN_NS;
    if (prefix_bytes < 1 || prefix_bytes > TW_PREFIX_BYTES
        || strspn(prefix, "abcdefghijklmnopqrstuvwxyz0123456789_-") != prefix_bytes)
        return tw_fail(reader, TICKWIRE_ERROR, "prefix: must match [a-z0-9_-]{1,%d}, was '%s'", TW_PREFIX_BYTES, prefix);
    if (name_bytes < 1 || name_bytes > TICKWIRE_RING_NAME_BYTES)
        return tw_fail(
            reader, TICKWIRE_ERROR, "consumer name: must be 1 to %d bytes, was '%s'", TICKWIRE_RING_NAME_BYTES, name);
    memcpy(reader->prefix, prefix, prefix_bytes);
    memcpy(reader->name, name, name_bytes);
    return tw_attach(reader);
}

/* Go back to the oldest record that is surely still there, instead of the next one that is published. */
static inline void tickwire_reader_from_oldest(tickwire_reader *reader)
{
    const uint64_t kept = TICKWIRE_SIGNALS_CAPACITY / 4 * 3;
    const uint64_t first = tw_load(reader->data.bytes + TICKWIRE_RING_FIRST_SEQUENCE_AT);
    const uint64_t published = tw_load_acquire(reader->data.bytes + TICKWIRE_RING_PUBLISHED_AT);
    reader->cursor = published > first + kept ? published - kept : first;
}

/* Say whether the name now means another ring than this reader's. One system call. False while it means nothing. */
static inline int tickwire_reader_replaced(const tickwire_reader *reader)
{
    char path[80];
    struct stat status;
    tw_path(&reader->data, path);
    return stat(path, &status) == 0 && status.st_ino != reader->data.inode;
}

/* Leave a replaced ring for the new one, at its oldest record. As `tickwire_reader_open`; call it again when it fails. */
static inline int tickwire_reader_reattach(tickwire_reader *reader)
{
    int code;
    tickwire_reader_close(reader);
    code = tw_attach(reader);
    if (code == 0)
        tickwire_reader_from_oldest(reader);
    return code;
}

/* Say whether the run is over: its owner has stopped the ring. What is published can still be polled. */
static inline int tickwire_reader_stopped(const tickwire_reader *reader)
{
    return tw_load_32(reader->data.bytes + TICKWIRE_RING_STOP_AT) != 0;
}

static inline const unsigned char *tw_slot(const tickwire_reader *reader, uint64_t sequence)
{
    return reader->data.bytes + TICKWIRE_RING_HEADER_BYTES
        + (sequence & (TICKWIRE_SIGNALS_CAPACITY - 1)) * TICKWIRE_SIGNALS_SLOT_BYTES;
}

/* Jump over what was overwritten (I4); returns how much that was. */
static inline uint64_t tw_lap(tickwire_reader *reader, uint64_t published, uint64_t stamp)
{
    const uint64_t margin = TICKWIRE_SIGNALS_CAPACITY / 4 * 3;
    const uint64_t newest = stamp > 0 && stamp - 1 > published ? stamp - 1 : published;
    uint64_t resumed = reader->cursor + 1;
    uint64_t lost;
    if (newest > margin && newest - margin > resumed)
        resumed = newest - margin;
    lost = resumed - reader->cursor;
    reader->lost += lost;
    reader->cursor = resumed;
    return lost;
}

/* Show operators how far this reader is. */
static inline void tw_note(const tickwire_reader *reader)
{
    if (reader->entry != 0) {
        tw_store(reader->control.bytes + reader->entry + TICKWIRE_RING_LOST, reader->lost);
        tw_store(reader->control.bytes + reader->entry + TICKWIRE_RING_CURSOR, reader->cursor);
    }
}

/* Copy up to `limit` signals; never blocks, no system call. BARRIER records are the replay's own: skip them.
 *
 * Returns how many were copied, 0 for none yet, or TICKWIRE_LAPPED: `*lost` signals were overwritten before they were
 * read, and the next poll goes on behind them. `*lost` is 0 otherwise; it may be NULL, `reader->lost` has the total.
 */
static inline int64_t tickwire_reader_poll(
    tickwire_reader *reader, tickwire_signal *signals, size_t limit, uint64_t *lost)
{
    size_t n = 0;
    size_t k;

    if (lost != NULL)
        *lost = 0;
    if (reader->data.bytes == NULL)
        return tw_fail(reader, TICKWIRE_ERROR, "signal reader: must be open");
    while (n < limit) {
        const uint64_t expected = reader->cursor + 1;
        const unsigned char *slot = tw_slot(reader, reader->cursor);
        unsigned char *copy = (unsigned char *)&signals[n];
        uint64_t published, stamp, jumped;

        /* SYNC stamp: the whole record of this sequence. */
        stamp = tw_load_acquire(slot);
        if (stamp == expected) {
            memcpy(copy, &reader->cursor, 8);
            for (k = 8; k < TICKWIRE_SIGNALS_SLOT_BYTES; k += 8) {
                const uint64_t word = tw_load(slot + k);
                memcpy(copy + k, &word, 8);
            }
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (tw_load(slot) == expected) {
                reader->cursor = expected;
                n++;
                continue;
            }
        }
        if (n > 0 || (stamp != 0 && stamp < expected))
            break;
        /* SYNC published: everything below it was stamped before; so a foreign stamp there means overwritten. */
        published = tw_load_acquire(reader->data.bytes + TICKWIRE_RING_PUBLISHED_AT);
        stamp = tw_load_acquire(slot);
        if (stamp == expected)
            continue;
        if (published <= reader->cursor)
            break;
        jumped = tw_lap(reader, published, stamp);
        tw_note(reader);
        if (lost != NULL)
            *lost = jumped;
        return TICKWIRE_LAPPED;
    }
    if (n > 0)
        tw_note(reader);
    return (int64_t)n;
}
