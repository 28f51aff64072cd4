"""`python -m benchmarks …` is `executor bench …`."""

import sys

from executor.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench"]
    main()
