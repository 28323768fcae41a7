/* A reader process for tests: c_strategy PREFIX NAME FILE COUNT [park] [oldest] [hold].
 *
 * Prints `ready` once attached (after the symbol table's text), appends every signal to FILE as raw bytes, and ends when
 * COUNT signals are received or lost, or the run is over; then prints one JSON object. `hold` waits for a line on
 * standard input before it reads; `park` never spins; `oldest` begins with the oldest signal. Errors: text, exit code 1.
 */
#include "tickwire.h"

#include <inttypes.h>
#include <stdlib.h>

static int has(int argc, char **argv, const char *word)
{
    int i;
    for (i = 5; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    static tickwire_signal signals[64];
    static tickwire_reader reader;
    uint64_t received = 0, laps = 0, lost = 0, disorder = 0, reattaches = 0, expected, jumped;
    const uint64_t wanted = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    const char *symbols;
    size_t length = 0;
    int found = TICKWIRE_READY;
    FILE *file;
    int64_t count, i;

    if (argc < 5 || tickwire_reader_open(&reader, argv[1], argv[2]) != 0) {
        fprintf(stderr, "%s\n", reader.error);
        return 1;
    }
    if (has(argc, argv, "park"))
        reader.spin_ns = 0;
    if (has(argc, argv, "oldest"))
        tickwire_reader_from_oldest(&reader);
    symbols = tickwire_symbols_json(&reader, &length);
    if (symbols == NULL)
        printf("%s\n", reader.error);
    else
        printf("%.*s\n", (int)length, symbols);
    file = fopen(argv[3], "ab");
    printf("ready\n");
    fflush(stdout);
    if (has(argc, argv, "hold"))
        getchar();
    expected = reader.cursor;
    while (received + lost < wanted && found != TICKWIRE_STOPPED) {
        found = tickwire_reader_wait(&reader, INT64_C(200000000000));
        if (found == TICKWIRE_REPLACED) {
            if (tickwire_reader_reattach(&reader) != 0) {
                fprintf(stderr, "%s\n", reader.error);
                return 1;
            }
            reattaches++;
            expected = reader.cursor;
            continue;
        }
        count = tickwire_reader_poll(&reader, signals, 64, &jumped);
        if (count == TICKWIRE_LAPPED) {
            laps++;
            lost += jumped;
            expected += jumped;
        }
        for (i = 0; i < count; i++)
            disorder += signals[i].sequence != expected++;
        if (count > 0) {
            received += (uint64_t)count;
            fwrite(signals, sizeof signals[0], (size_t)count, file);
        }
    }
    fclose(file);
    printf("{\"stopped\": %d, \"received\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"counted_lost\": %" PRIu64
           ", \"laps\": %" PRIu64 ", \"disorder\": %" PRIu64 ", \"reattaches\": %" PRIu64 "}\n",
        found == TICKWIRE_STOPPED, received, lost, reader.lost, laps, disorder, reattaches);
    tickwire_reader_close(&reader);
    return 0;
}
