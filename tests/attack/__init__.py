"""Attacks on the library's claims, from outside: every proof is compared with exact arithmetic."""
