"""Threads, memory, vector instructions and compiled access to rows."""
