"""Published collections of hostile input, run through our doors by `./scripts/corpora`; none of them is kept here."""
