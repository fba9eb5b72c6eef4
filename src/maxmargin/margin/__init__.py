"""One maximum-margin solver a file."""
