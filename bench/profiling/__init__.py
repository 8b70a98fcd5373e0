"""Profiles of single cases with torch.profiler."""
