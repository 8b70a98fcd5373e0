"""The pages of a run, of its profiles, of a comparison and of a history: one file each that needs no network."""
