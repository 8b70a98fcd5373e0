"""Pictures as declarations, a module for each kind: files are drawn of them, and the charts of pages."""
