"""The files of a run: its plan, the journal of records, the table of results, profiles, and the environment."""
