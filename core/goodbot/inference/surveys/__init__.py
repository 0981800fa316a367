"""How the servers that goodbot knows are found on this machine, one module each."""
