"""Services, measured loads and the model of `bench/scale.py`."""
