"""What has no idea of goodbot's in it: time, errors, text, processes. It uses no other room."""
