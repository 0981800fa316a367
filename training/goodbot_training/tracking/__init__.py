"""TensorBoard, Weights & Biases and trackio. Importing one of these imports none of their SDKs."""
