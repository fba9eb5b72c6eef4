"""Where the data live and Gram blocks are computed. An engine knows nothing of SVMs."""
