"""The commands, one function each: its parameters are its flags, its docstring is its help."""
