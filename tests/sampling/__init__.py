"""How rounds are taken, with turns that are scripted."""
