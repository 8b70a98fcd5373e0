"""The protocol between the engine and the measuring processes: requests, inputs by key, judged outputs, and rounds."""
