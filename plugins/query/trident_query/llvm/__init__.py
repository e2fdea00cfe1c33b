"""Patterns compiled to machine code: a SIMD circuit for columns, a prefiltered scan for texts.

`host` describes the CPU, `objects` keeps compiled code on disk, `loader` links it, `code` writes the common
parts of LLVM IR; `planes` and `circuit` make the code for columns, `windows` and `scan` that for texts.
Docs: docs/adr/0006-simd-circuit.md.
"""
