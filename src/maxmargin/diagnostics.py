"""Tables a person reads: margins, slacks, support vectors, KKT states, bounds."""
