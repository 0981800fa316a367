# SPDX-License-Identifier: Apache-2.0
"""What is said: messages and ratings on their way in, answers and notices on their way out."""
