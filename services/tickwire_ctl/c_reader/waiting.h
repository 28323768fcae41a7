/* ---- Waiting: spin, then park on the ring's futex word, always bounded. ----------------------------------------- */

/* What a waiter has to report now, TICKWIRE_TIMEOUT for nothing. Records come first: a stop loses none. */
static inline int tw_look(tickwire_reader *reader, int64_t now_ns)
{
    const int stopped = tickwire_reader_stopped(reader);
    if (tw_load_acquire(tw_slot(reader, reader->cursor)) == reader->cursor + 1
        || tw_load_acquire(reader->data.bytes + TICKWIRE_RING_PUBLISHED_AT) > reader->cursor)
        return TICKWIRE_READY;
    if (stopped || now_ns - reader->looked_ns >= TW_LOOK_EVERY_NS) {
        reader->looked_ns = now_ns;
        if (tickwire_reader_replaced(reader))
            return TICKWIRE_REPLACED;
    }
    return stopped ? TICKWIRE_STOPPED : TICKWIRE_TIMEOUT;
}

static inline void tw_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield" ::: "memory");
#endif
}

/* Sleep while the word holds `expected`, at most `timeout_ns`. The shared kind: a read-only mapping is enough. */
static inline void tw_futex_wait(const unsigned char *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec timeout;
    timeout.tv_sec = timeout_ns / 1000000000;
    timeout.tv_nsec = timeout_ns % 1000000000;
    syscall(SYS_futex, word, 0 /* FUTEX_WAIT */, expected, &timeout, NULL, 0);
}

/* Wait until `tickwire_reader_poll` has something to report, at most `timeout_ns`.
 *
 * Spins `reader->spin_ns` (TICKWIRE_SPIN_FOREVER: never sleeps, for a core of its own), then sleeps until the producer
 * wakes it. Returns TICKWIRE_READY, TICKWIRE_TIMEOUT, TICKWIRE_STOPPED (the run is over, everything was read),
 * TICKWIRE_REPLACED (call `tickwire_reader_reattach`) or TICKWIRE_ERROR (the reader is not open).
 */
static inline int tickwire_reader_wait(tickwire_reader *reader, int64_t timeout_ns)
{
    int64_t now_ns = tw_monotonic_ns();
    const int64_t deadline_ns = timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns : INT64_MAX;
    const int64_t spin_until_ns = reader->spin_ns < deadline_ns - now_ns ? now_ns + reader->spin_ns : deadline_ns;
    const unsigned char *word;
    int found;

    if (reader->data.bytes == NULL)
        return tw_fail(reader, TICKWIRE_ERROR, "signal reader: must be open");
    word = reader->data.bytes + TICKWIRE_RING_FUTEX_AT;
    while ((found = tw_look(reader, now_ns)) == TICKWIRE_TIMEOUT && now_ns < spin_until_ns) {
        tw_pause();
        now_ns = tw_monotonic_ns();
    }
    while (found == TICKWIRE_TIMEOUT && (now_ns = tw_monotonic_ns()) < deadline_ns) {
        const uint32_t expected = tw_load_32(word);
        const int64_t left_ns = deadline_ns - now_ns;
        /* SYNC park: pairs with the producer's fence and swap after `published`. */
        __atomic_store_n((uint32_t *)(void *)(reader->control.bytes + TICKWIRE_RING_PARK_REQUEST_AT), 1u,
            __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        found = tw_look(reader, now_ns);
        if (found == TICKWIRE_TIMEOUT) {
            tw_futex_wait(word, expected, left_ns < TW_MAX_PARK_NS ? left_ns : TW_MAX_PARK_NS);
            found = tw_look(reader, now_ns);
        }
    }
    return found;
}
