"""Data files as rows and labels: CSV, TSV, Parquet, svmlight/LIBSVM text, npz.

Files may be compressed by gzip or bzip2, and may come from standard input.

>>> import maxmargin as mm
>>> path = mm.datasets.fruit_file()
>>> table = mm.files.read(path, target="fruit")
>>> table.X.shape, table.names
((150, 3), ['mass_g', 'width_cm', 'height_cm'])
"""

from .fingerprint import fingerprint
from .reading import Batches, batches, read
from .table import DataFileError, DataTable

Table = DataTable  # its earlier name

__all__ = ["Batches", "DataFileError", "DataTable", "Table", "batches", "fingerprint", "read"]
