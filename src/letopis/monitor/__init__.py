"""Checks for people: whether a page changed since they last looked, what changed, whether it was available; and
watches.
"""
