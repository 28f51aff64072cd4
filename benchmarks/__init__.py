"""The harness for isolate budgets: probes, peers in the same run, drawings, a report, and advice on budgets."""
