"""How fast the compiled fleet simulates."""
