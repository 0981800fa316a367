# SPDX-License-Identifier: Apache-2.0
"""What answers: the model's servers, the models on this machine, and prompts."""
