"""What learns: training, adapter versions, their evaluation, and the quality of ratings."""
