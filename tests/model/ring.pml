/* The ring's data protocol exactly as shipped: kernels/producer.py, kernels/consumer.py. I-numbers as in ring/README.md.
 *
 * Every step between two semicolons is one shared access. A record is two words; both carry the sequence and the
 * incarnation of its producer, so that a mixture or a rewound sequence shows. The producer may crash between any two
 * stores (CRASHES times) and restarts by I6; the consumer may crash and, in a lossless ring, resumes at its committed
 * cursor. LOSSLESS=1 adds the gate, back-pressure, eviction and the return of an evicted consumer.
 *
 * WRONG injects one mistake; each must make the check fail:
 *   1 slot not invalidated        2 stamp before payload           3 stamp not looked at again after the copy
 *   4 restart without scan        5 stamp between payload words    6 batch above a whole ring
 *   7 `published` loaded after the last look at the stamp          8 a lap counts 1, not the records
 *   9 gate ignored               10 cursor committed before the copy
 *  11 `published` before the stamps of its batch                  12 waits again for a consumer more than a ring behind
 *  13 evicted without the flag                                    14 clears the flag but does not lower the gate
 *  15 a later lap's stamp taken for an earlier one's
 */
#ifndef WRONG
#define WRONG 0
#endif
#ifndef LOSSLESS
#define LOSSLESS 0
#endif
#ifndef CAP
#define CAP 4
#endif
#ifndef N
#define N 9
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#if WRONG == 12
#define NEAR(n, c) (true)
#else
#define NEAR(n, c) ((n) - (c) <= CAP)
#endif
#define MARGIN ((CAP / 4) * 3)
#define ACTIVE 1
#define REJOINING 2

byte stamp[CAP], word0[CAP], word1[CAP];
byte published = 0;
byte cursor = 0, state = ACTIVE; /* the consumer's entry */
bool evicted = false;            /* producer-owned */
byte incarnation = 0, crashes = 0, evictions = 0;
byte seen[N];
bool done = false;

#define CONTENT(n) ((n) * 4 + incarnation)
#define CRASH if :: crashes < CRASHES -> crashes++; incarnation++; goto restart :: true fi

proctype Producer() {
    byte n, k, count, gate, c, s;
restart:
    n = published; /* I6 */
#if WRONG != 4
    do
    :: n < published + CAP && stamp[n % CAP] == n + 1 -> n++
    :: else -> break
    od;
#endif
    published = n;
    gate = n;
#if LOSSLESS
    atomic { if :: !evicted && cursor < gate -> gate = cursor :: else fi };
#endif
    do
    :: n >= N -> break
    :: n < N ->
#if WRONG == 6
        count = CAP + 1;
#else
        if :: count = 1 :: count = CAP / 2 fi; /* I3 */
#endif
        if :: n + count > N -> count = N - n :: else fi;
#if LOSSLESS && WRONG != 9
        if
        :: n + count - gate > CAP ->
            /* gate_of: I5. The flag is the producer's own, the entry's words are read one by one. */
            s = state;
            c = cursor;
            gate = n;
            if
            :: evicted && s == REJOINING && NEAR(n, c) ->
                evicted = false;
#if WRONG != 14
                gate = c;
#endif
                skip
            :: evicted && !(s == REJOINING && NEAR(n, c)) -> skip
            :: !evicted && n + count - c > CAP && evictions < EVICTIONS && s == ACTIVE ->
                evictions++; /* the stall timeout has passed */
#if WRONG != 13
                evicted = true;
#endif
                skip
            :: !evicted -> gate = c
            fi;
            if
            :: n + count - gate > CAP ->
                (cursor != c || state != s || (evictions < EVICTIONS && !evicted)); /* back-pressure: try again later */
                goto again
            :: else
            fi
        :: else
        fi;
#endif
        k = 0;
        do
        :: k == count -> break
        :: k < count ->
#if WRONG != 1
            stamp[n % CAP] = 0; CRASH;
#endif
#if WRONG == 2
            stamp[n % CAP] = n + 1; CRASH;
#endif
#if WRONG == 11
            published = n + 1;
#endif
            word0[n % CAP] = CONTENT(n); CRASH;
#if WRONG == 5
            stamp[n % CAP] = n + 1; CRASH;
#endif
            word1[n % CAP] = CONTENT(n); CRASH;
            stamp[n % CAP] = n + 1; CRASH;
            n++;
            k++
        od;
        published = n; CRASH;
again:
        skip
    od;
    done = true
}

proctype Consumer() {
    byte c = 0, s, p, a, b, resumed, newest;
    byte got = 0, lost = 0, first = 0;
    bool flag;
    do
    :: c == N -> break
    :: c < N ->
#if LOSSLESS
        flag = evicted; /* rejoin: I5 */
        if
        :: flag && state == ACTIVE ->
            cursor = c;
            state = REJOINING
        :: !flag && state == REJOINING -> state = ACTIVE
        :: else
        fi;
#if WRONG == 10
        cursor = c + 1;
#endif
#endif
        s = stamp[c % CAP]; /* I2 */
        if
        :: s == c + 1 ->
            a = word0[c % CAP];
            b = word1[c % CAP];
#if WRONG != 3
            s = stamp[c % CAP];
#endif
            if
            :: s == c + 1 ->
                assert(a == b && a / 4 == c);
                if :: seen[c] == 0 -> seen[c] = a + 1 :: else -> assert(seen[c] == a + 1) fi;
                got++;
                c++;
#if LOSSLESS && WRONG != 10
                if :: cursor = c :: true fi; /* commit, now or with a later poll */
#endif
                goto next
            :: else
            fi
#if WRONG == 15
        :: s > 0 && s != c + 1 ->
#else
        :: s > 0 && s < c + 1 -> /* an earlier lap's: `published` is not looked at */
#endif
#if LOSSLESS
            if :: cursor != c -> cursor = c :: else fi; /* an idle consumer commits what it has */
#endif
            (stamp[c % CAP] != s || (done && published <= c) || evicted != flag);
            if :: done && published <= c -> break :: else -> goto next fi
        :: else
        fi;
#if WRONG == 7
        s = stamp[c % CAP];
        p = published;
#else
        p = published;
        s = stamp[c % CAP];
#endif
        if
        :: s == c + 1 -> skip
        :: s != c + 1 && p > c -> /* I4 */
#if LOSSLESS
            assert(evicted); /* while it is waited for, a consumer loses nothing */
#endif
            newest = p;
            if :: s > 0 && s - 1 > newest -> newest = s - 1 :: else fi;
            resumed = c + 1;
            if :: newest > MARGIN && newest - MARGIN > resumed -> resumed = newest - MARGIN :: else fi;
#if WRONG == 8
            lost++;
#else
            lost = lost + (resumed - c);
#endif
            /* A lap is never imagined: what is skipped first was really overwritten. */
            assert(stamp[c % CAP] != c + 1);
            c = resumed;
#if LOSSLESS
            cursor = c
#endif
        :: else ->
#if LOSSLESS
            if :: cursor = c :: true fi; /* an idle consumer commits what it has */
            if :: cursor != c -> cursor = c :: else fi;
#endif
            (published != p || stamp[c % CAP] != s || (done && published <= c) || evicted != flag);
            if :: done && published <= c -> break :: else fi
        fi;
next:
        /* A consumer may crash here and resume at its committed cursor; what it read since comes again. */
#if LOSSLESS
        if
        :: crashes < CRASHES -> crashes++; got = got - (c - cursor); c = cursor
        :: true
        fi
#else
        skip
#endif
    od;
    assert(got + lost == c)
}

init { atomic { run Producer(); run Consumer() } }
