"""Solvers: one algorithm per file, or per folder."""
