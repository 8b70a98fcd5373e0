"""Pictures as files, by Matplotlib."""
