"""The wasm engine: its settings, its compiled-module cache, and guest calls that run in slices."""
