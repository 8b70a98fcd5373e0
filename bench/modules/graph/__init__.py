"""A module as a graph of operators, its attention cores, and the graph with other cores in their places."""
