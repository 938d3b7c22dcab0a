"""`python -m moot` runs the command line."""

from moot.cli import main

if __name__ == "__main__":
    main()
