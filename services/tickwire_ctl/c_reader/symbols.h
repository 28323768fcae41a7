/* ---- Symbols: which instrument a `symbol_id` is, and its increments. --------------------------------------------- */

/* The run's symbol table as JSON text of `*length` bytes, not ended by a 0; valid until close or reattach.
 *
 * An array in the order of the ids: [{"venue": ..., "name": ..., "price_increment": "0.1", "quantity_increment": ...}].
 * A price is exactly `price_units * price_increment`. NULL when there is none; the text is in `reader->error`.
 */
static inline const char *tickwire_symbols_json(tickwire_reader *reader, size_t *length)
{
    tw_segment *symbols = &reader->symbols;
    uint64_t bytes;

    if (reader->data.bytes == NULL) {
        tw_fail(reader, TICKWIRE_ERROR, "signal reader: must be open");
        return NULL;
    }
    if (symbols->bytes == NULL && tw_open(reader, symbols, TW_SYMBOLS_NAME, 0) != 0)
        return NULL;
    bytes = symbols->size < TW_SYMBOLS_HEADER_BYTES ? 0 : tw_load(symbols->bytes + TW_SYMBOLS_LENGTH_AT);
    if (symbols->size < TW_SYMBOLS_HEADER_BYTES || tw_load_acquire(symbols->bytes) != TW_SYMBOLS_MAGIC)
        tw_fail(reader, TICKWIRE_ERROR, "segment '%s': is no Tickwire symbol table", symbols->name);
    else if (bytes > symbols->size - TW_SYMBOLS_HEADER_BYTES)
        tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must hold %llu bytes, is cut off", symbols->name,
            (unsigned long long)bytes);
    else if (tw_load(symbols->bytes + TW_SYMBOLS_HASH_AT)
        != tw_load(reader->data.bytes + TICKWIRE_RING_SYMBOL_TABLE_HASH_AT))
        tw_fail(reader, TICKWIRE_ERROR, "segment '%s': must hold the table that ring '%s' was made for, holds another",
            symbols->name, reader->data.name);
    else {
        *length = (size_t)bytes;
        return (const char *)symbols->bytes + TW_SYMBOLS_HEADER_BYTES;
    }
    tw_close(symbols);
    return NULL;
}
