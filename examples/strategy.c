/* A strategy in C: prints every BUY and SELL of a running Tickwire.
 *
 *     cc -std=c11 -O2 -I deploy/include examples/strategy.c -o strategy && ./strategy [PREFIX]
 */
#include "tickwire.h"

#include <inttypes.h>

int main(int argc, char **argv)
{
    static tickwire_signal signals[256];
    tickwire_reader reader;
    uint64_t lost;
    int64_t count, i;
    int found;

    if (tickwire_reader_open(&reader, argc > 1 ? argv[1] : "tickwire", "strategy-c") != 0) {
        fprintf(stderr, "%s\n", reader.error);
        return 1;
    }
    while ((found = tickwire_reader_wait(&reader, INT64_C(10000000000))) != TICKWIRE_TIMEOUT) {
        if (found == TICKWIRE_REPLACED && tickwire_reader_reattach(&reader) == 0)
            continue;
        if (found != TICKWIRE_READY)
            break; /* the run is over */
        count = tickwire_reader_poll(&reader, signals, 256, &lost);
        if (count == TICKWIRE_LAPPED)
            printf("lost %" PRIu64 "\n", lost);
        for (i = 0; i < count; i++)
            if (signals[i].action != TICKWIRE_ACTION_HOLD)
                printf("symbol %u %s %" PRId64 " at %" PRId64 "\n", signals[i].symbol_id,
                    signals[i].action == TICKWIRE_ACTION_BUY ? "BUY" : "SELL", signals[i].quantity_units,
                    signals[i].limit_price_units);
    }
    tickwire_reader_close(&reader);
    return 0;
}
