"""Features: keeps a book of every symbol, turns each market event into a row, keeps the windows of rows."""
