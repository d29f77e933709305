"""Readers of what other tools have kept: folders, histories, databases, mirrors."""
