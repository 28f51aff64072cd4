"""`python -m executor.cli`"""

from executor.cli import main

main()
