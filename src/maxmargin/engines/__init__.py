"""Where the data live and Gram blocks are computed. Solvers use them through `engines.base`."""
