"""One maximum-margin solver a file, or a folder."""
