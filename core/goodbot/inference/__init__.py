"""What answers: the model's servers, the models on this machine, and prompts."""
