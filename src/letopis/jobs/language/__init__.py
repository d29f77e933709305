"""The steps of job files: what operations are not a step for is written here; the worker that runs them."""
