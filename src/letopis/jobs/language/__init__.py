"""The steps of job files that are not operations, and the worker that runs all steps."""
