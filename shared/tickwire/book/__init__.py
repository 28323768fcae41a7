"""Price-level books of many symbols, compiled: the venue's book in ingest and the book behind the features."""

from tickwire.book.levels import BOOK_TYPE, DEFAULT_CAPACITY, Book, new_book

__all__ = ["BOOK_TYPE", "DEFAULT_CAPACITY", "Book", "new_book"]
