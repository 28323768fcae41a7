/* The ring's protocol in C, as the limit for the compiled kernels: the same segments, the same steps, the same clock read,
 * fence and look at park_request for each batch. Built by bench_ring.py with gcc -O3; never shipped.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ __volatile__("yield")
#endif

#define U64(a) ((_Atomic uint64_t *)(a))
#define U32(a) ((_Atomic uint32_t *)(a))
#define HEADER 0x1000
#define PUBLISHED 0x80
#define FUTEX 0x180
#define PARK 0x180
#define ENTRIES 0x200

typedef struct {
    uint64_t data, control, capacity, slot_bytes, next, gate, entry, cursor, consumers;
} end_t;

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline int publish(end_t *p, const uint64_t *words, int64_t count) {
    if (p->next + count - p->gate > p->capacity) {
        uint64_t gate = p->next;
        for (uint64_t i = 0; i < 16; i++) {
            uint64_t entry = p->control + ENTRIES + 128 * i;
            uint32_t state = atomic_load_explicit(U32(entry + 0x18), memory_order_acquire);
            if (state == 0 || state == 3) continue;
            uint64_t cursor = atomic_load_explicit(U64(entry), memory_order_acquire);
            if (cursor < gate) gate = cursor;
        }
        if (p->next + count - gate > p->capacity) return 0;
        p->gate = gate;
    }
    uint64_t n_words = p->slot_bytes / 8, sequence = p->next;
    int64_t now = now_ns();
    for (int64_t i = 0; i < count; i++) {
        uint64_t slot = p->data + HEADER + (sequence & (p->capacity - 1)) * p->slot_bytes;
        atomic_store_explicit(U64(slot), 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(U64(slot + 8), (uint64_t)now, memory_order_relaxed);
        for (uint64_t k = 2; k < n_words; k++)
            atomic_store_explicit(U64(slot + 8 * k), words[i * n_words + k], memory_order_relaxed);
        sequence++;
        atomic_store_explicit(U64(slot), sequence, memory_order_release);
    }
    p->next = sequence;
    atomic_store_explicit(U64(p->data + PUBLISHED), sequence, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(U32(p->control + PARK), memory_order_relaxed)) atomic_exchange(U32(p->control + PARK), 0);
    return 1;
}

static inline int64_t poll(end_t *c, uint64_t *words, int64_t limit) {
    uint64_t n_words = c->slot_bytes / 8;
    int64_t n = 0;
    while (n < limit) {
        uint64_t slot = c->data + HEADER + (c->cursor & (c->capacity - 1)) * c->slot_bytes, expected = c->cursor + 1;
        uint64_t stamp = atomic_load_explicit(U64(slot), memory_order_acquire);
        if (stamp != expected) {
            if (n > 0 || (stamp != 0 && stamp <= c->cursor)) break;
            uint64_t published = atomic_load_explicit(U64(c->data + PUBLISHED), memory_order_acquire);
            if (atomic_load_explicit(U64(slot), memory_order_acquire) == expected) continue;
            if (published > c->cursor) return -1; /* lapped: cannot happen here */
            break;
        }
        for (uint64_t k = 1; k < n_words; k++)
            words[n * n_words + k] = atomic_load_explicit(U64(slot + 8 * k), memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(U64(slot), memory_order_relaxed) != expected) break;
        words[n * n_words] = c->cursor;
        c->cursor = expected;
        n++;
    }
    return n;
}

static inline void commit(end_t *c) { atomic_store_explicit(U64(c->entry), c->cursor, memory_order_release); }

void c_ping(end_t *p, end_t *c, uint64_t *words, int64_t n, int64_t *round_trip_ns) {
    for (int64_t i = 0; i < n; i++) {
        int64_t start = now_ns();
        publish(p, words, 1);
        while (poll(c, words, 1) != 1) PAUSE();
        commit(c);
        round_trip_ns[i] = now_ns() - start;
    }
}

void c_echo(end_t *p, end_t *c, uint64_t *words, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        while (poll(c, words, 1) != 1) PAUSE();
        commit(c);
        publish(p, words, 1);
    }
}

void c_send_paced(end_t *p, uint64_t *words, int64_t n, int64_t gap_ns) {
    int64_t due = now_ns() + gap_ns;
    for (int64_t i = 0; i < n; i++) {
        while (now_ns() < due) PAUSE();
        due += gap_ns;
        while (!publish(p, words, 1)) PAUSE();
    }
}

void c_receive_paced(end_t *c, uint64_t *words, int64_t n, int64_t *one_way_ns) {
    for (int64_t i = 0; i < n; i++) {
        while (poll(c, words, 1) != 1) PAUSE();
        one_way_ns[i] = now_ns() - (int64_t)words[1];
        commit(c);
    }
}

int64_t c_produce(end_t *p, uint64_t *words, int64_t n, int64_t batch) {
    int64_t start = now_ns(), sent = 0;
    while (sent < n) {
        if (publish(p, words, batch)) sent += batch;
        else PAUSE();
    }
    return now_ns() - start;
}

uint64_t c_consume(end_t *c, uint64_t *words, int64_t n, int64_t batch) {
    uint64_t total = 0, n_words = c->slot_bytes / 8;
    int64_t got = 0;
    while (got < n) {
        int64_t found = poll(c, words, batch);
        if (found > 0) {
            for (int64_t i = 0; i < found; i++) total += words[i * n_words + 2];
            got += found;
            commit(c);
        } else PAUSE();
    }
    return total;
}
