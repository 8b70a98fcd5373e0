"""The answer of `advise`: on one screen, as Markdown and as JSON."""
