# SPDX-License-Identifier: Apache-2.0
"""Answers, ratings and trainings as spans and events of OpenTelemetry, for a collector of the owner's."""
