"""What turns ratings into a better adapter, and samples from it. Imports no ML framework."""
