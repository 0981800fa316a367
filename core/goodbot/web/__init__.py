"""What goodbot says over HTTP to a supervisor on the same machine; off unless a port is set."""
