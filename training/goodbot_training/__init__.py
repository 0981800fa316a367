# SPDX-License-Identifier: Apache-2.0
"""What turns ratings into a better adapter, and samples from it. Imports no ML framework."""
