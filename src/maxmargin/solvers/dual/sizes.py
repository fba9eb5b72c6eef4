"""Numbers of samples at which the solvers of the dual change."""

# Samples up to which float64 takes no longer, and answers are taken to rounding.
FEW_SAMPLES = 256
# Samples up to which a task has its whole Gram matrix, and tasks are solved side by side.
SMALL_SAMPLES = 3000
