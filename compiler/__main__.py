"""Compiles the core of this tree."""

from compiler.build import main

main()
