# SPDX-License-Identifier: Apache-2.0
"""TensorBoard, Weights & Biases and trackio. Importing one of these imports none of their SDKs."""
