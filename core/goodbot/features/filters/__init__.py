# SPDX-License-Identifier: Apache-2.0
"""What no training may take: answers with words that an owner has blocked, and with personal data."""
