"""What is agreed on: inputs by their keys, what is judged, and rounds with turns that are scripted."""
