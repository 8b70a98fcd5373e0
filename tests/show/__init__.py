"""Lines, tables and pictures, on results that nobody measured."""
