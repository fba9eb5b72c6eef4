"""The separating algorithms. Importing one imports the compiler: import it when fitting."""
