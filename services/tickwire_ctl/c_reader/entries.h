/* ---- Entries: this reader's place among the consumers, held by a lock that dies with the process. --------------- */

/* FNV-1a, never 0: the hash under which a consumer's name stands in its entry. */
static inline uint64_t tw_hash_name(const char *name)
{
    uint64_t value = TW_FNV_OFFSET;
    for (; *name != '\0'; name++)
        value = (value ^ (unsigned char)*name) * TW_FNV_PRIME;
    return value | 1;
}

static inline size_t tw_entry_at(int index)
{
    return TICKWIRE_RING_ENTRIES_AT + (size_t)index * TICKWIRE_RING_ENTRY_BYTES;
}

/* Offset of the entry to take, locked: that of the same name, else a free one, else a dead reader's; 0 = none.
 * `*held` says that the name's entry is locked by a live process. */
static inline size_t tw_find_entry(const tickwire_reader *reader, uint64_t name_hash, int *held)
{
    const tw_segment *control = &reader->control;
    int pass, i;

    for (pass = 0; pass < 3; pass++)
        for (i = 0; i < TICKWIRE_SIGNALS_MAX_CONSUMERS; i++) {
            const size_t entry = tw_entry_at(i);
            const uint32_t state = tw_load_32(control->bytes + entry + TICKWIRE_RING_STATE);
            const int used = state != TICKWIRE_RING_FREE;
            const int named = used && tw_load(control->bytes + entry + TICKWIRE_RING_NAME_HASH) == name_hash;
            if ((pass == 0 && !named) || (pass == 1 && used) || (pass == 2 && state != TICKWIRE_RING_OBSERVER))
                continue;
            if (tw_lock(control, entry + TICKWIRE_RING_LIVENESS_LOCK, F_WRLCK))
                return entry;
            if (pass == 0) {
                *held = 1;
                return entry;
            }
        }
    return 0;
}

/* Register as an observer; with all entries taken the reader stays unregistered, which costs it nothing. */
static inline int tw_register(tickwire_reader *reader)
{
    const struct timespec look_every = {0, 1000000};
    const int64_t deadline_ns = tw_monotonic_ns() + TW_ENTRY_LOCK_TIMEOUT_NS;
    const uint64_t name_hash = tw_hash_name(reader->name);
    unsigned char *entry;
    int held = 0;

    while (!tw_lock(&reader->control, TICKWIRE_RING_ENTRY_LOCK_AT, F_WRLCK)) {
        if (tw_monotonic_ns() >= deadline_ns)
            return tw_fail(reader, TICKWIRE_ERROR,
                "ring '%s': another process keeps attaching for %d s; is it stopped?", reader->data.name,
                (int)(TW_ENTRY_LOCK_TIMEOUT_NS / 1000000000));
        nanosleep(&look_every, NULL);
    }
    reader->entry = tw_find_entry(reader, name_hash, &held);
    if (reader->entry != 0 && !held) {
        entry = reader->control.bytes + reader->entry;
        memcpy(entry + TICKWIRE_RING_NAME, reader->name, sizeof reader->name);
        tw_store(entry + TICKWIRE_RING_CURSOR, reader->cursor);
        tw_store(entry + TICKWIRE_RING_LOST, 0);
        tw_store(entry + TICKWIRE_RING_NAME_HASH, name_hash);
        tw_store_32(entry + TICKWIRE_RING_PID, (uint32_t)getpid());
        tw_store_32(entry + TICKWIRE_RING_ATTACHES, tw_load_32(entry + TICKWIRE_RING_ATTACHES) + 1);
        tw_store_32(entry + TICKWIRE_RING_STATE, TICKWIRE_RING_OBSERVER);
    }
    tw_lock(&reader->control, TICKWIRE_RING_ENTRY_LOCK_AT, F_UNLCK);
    if (held)
        return tw_fail(reader, TICKWIRE_ERROR, "ring '%s': consumer '%s' must be attached once, pid %u is alive",
            reader->data.name, reader->name,
            (unsigned)tw_load_32(reader->control.bytes + reader->entry + TICKWIRE_RING_PID));
    return 0;
}
