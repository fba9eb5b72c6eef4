"""scikit-learn's interface to the problems and solvers."""
