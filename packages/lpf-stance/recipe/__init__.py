"""How the weights of this package were made: ``python -m recipe --help``."""
