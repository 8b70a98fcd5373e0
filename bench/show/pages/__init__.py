"""The pages of a run, of a comparison and of a history: one file each that needs no network and no server."""
