"""Connectors that come with goodbot: one folder a platform, each a plugin."""
