"""Series with planted laws."""
