"""What plugins implement and exchange with the core: contracts, events, ratings, hooks."""
