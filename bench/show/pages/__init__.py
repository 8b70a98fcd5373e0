"""The pages of a run, of its profiles, and of a comparison: one file each that needs no network."""
