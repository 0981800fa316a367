"""What has no idea of goodbot's in it: time, errors, text, processes. It imports nothing of the other rooms."""
