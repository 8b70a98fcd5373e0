"""Pictures of results and of profiles, a module for each kind."""
