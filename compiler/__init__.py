"""Compiles the rules from the sources that also run as they are.

`tree` reads the sources, `derive` makes of each what Cython takes, `build` compiles.
CONTRIBUTING, "The compiled core", says what a mark or a type means.
"""
