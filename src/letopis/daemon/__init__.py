"""Loops that keep running over one archive, and the processes they run in."""
