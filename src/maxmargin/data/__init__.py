"""The rows of X as blocks, the normalised samples Z, and the files of the bundled data sets."""
