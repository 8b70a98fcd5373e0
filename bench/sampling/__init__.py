"""What the engine and the processes that measure agree on: requests, inputs by key, what is judged, and rounds."""
