"""The wall: what crosses it (`bridge.wire`) and, on the host's side, the tool proxy."""
