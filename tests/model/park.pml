/* Parking and waking exactly as shipped: kernels/waiting.py `wait`, kernels/producer.py `wake` (I9).
 *
 * Spin's steps are sequentially consistent; a missing seq_cst fence is modelled as what it permits, a load that
 * happens before the store in front of it. The futex is the kernel's: compare and sleep are one step, a wake-up hits
 * whoever sleeps then. Waits have no time limit here: a lost wake-up is a consumer that sleeps for ever, which Spin
 * reports as an invalid end state.
 *
 * WRONG injects one mistake; each must make the check fail:
 *   1 no look between request and sleep     2 producer without fence (looks for a request before publishing)
 *   3 futex word read after the last look   4 wakes one, not all           5 futex word not changed by a wake-up
 *   6 consumer without fence (looks before its request is seen)
 */
#ifndef WRONG
#define WRONG 0
#endif
#define N 3

byte published = 0, word = 0;
bool request = false;
bool asleep[2];

inline wake() {
    if
    :: request -> /* an exchange: what is swapped out decides */
        atomic { r = request; request = false };
        if
        :: r ->
#if WRONG != 5
            word++;
#endif
#if WRONG == 4
            atomic { if :: asleep[0] -> asleep[0] = false :: else -> asleep[1] = false fi }
#else
            atomic { asleep[0] = false; asleep[1] = false }
#endif
        :: else
        fi
    :: else
    fi
}

proctype Producer() {
    bool r, early;
    byte n = 0;
    do
    :: n == N -> break
    :: n < N ->
        n++;
#if WRONG == 2
        early = request;
        published = n;
        if :: early -> wake() :: else fi
#else
        published = n;
        wake()
#endif
    od
}

proctype Consumer(byte me) {
    byte c = 0, expected;
    bool ready;
    do
    :: c == N -> break
    :: c < N && published > c -> c++
    :: c < N && published <= c ->
#if WRONG != 3
        expected = word;
#endif
#if WRONG == 6
        ready = published > c;
        request = true;
#else
        request = true;
#if WRONG == 1
        ready = false;
#else
        ready = published > c;
#endif
#endif
#if WRONG == 3
        expected = word;
#endif
        if
        :: ready
        :: !ready ->
            atomic { if :: word == expected -> asleep[me] = true :: else fi };
            !asleep[me]
        fi
    od
}

init { atomic { run Producer(); run Consumer(0); run Consumer(1) } }
