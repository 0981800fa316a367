# SPDX-License-Identifier: Apache-2.0
"""Forms of exported answers that other programs read: TRL, Langfuse, Label Studio, Argilla."""
