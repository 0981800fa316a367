"""How a round fits into the memory that is there, and what it costs."""
