"""The worker process: isolates, and nothing else. It imports the wire, the engine and itself."""
