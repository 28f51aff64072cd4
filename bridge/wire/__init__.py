"""What crosses the wall, with no I/O: errors, values, frames."""
