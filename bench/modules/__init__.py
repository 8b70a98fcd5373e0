"""A layer or model of anybody: how it is made of its name, what it is called with, and how a core gets into it."""
