"""One separating algorithm a file. Importing a solver imports the compiler: do so when fitting."""
