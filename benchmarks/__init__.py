"""The harness for isolate budgets: every promise of speed is a probe here, measured on this machine, now."""
