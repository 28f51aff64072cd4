"""What is measured: one module a probe, each with `run(scale) -> list[Figure]`."""
