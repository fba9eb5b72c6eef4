"""The Dask engine: rows in partitions, on the workers of a cluster or on Dask's threads."""
