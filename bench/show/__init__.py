"""Results for people: lines, tables and pictures, from the table of results alone."""
