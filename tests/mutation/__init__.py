"""Single changes to the guard modules, to see whether their tests notice: `./scripts/mutate`."""
