"""One case under torch.profiler."""
