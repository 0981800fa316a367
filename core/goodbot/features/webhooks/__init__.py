# SPDX-License-Identifier: Apache-2.0
"""What happens here, told to programs elsewhere: signed requests, repeated until they are taken."""
