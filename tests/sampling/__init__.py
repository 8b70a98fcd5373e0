"""The protocol of samples: inputs by their keys, judged outputs, and rounds with scripted turns."""
