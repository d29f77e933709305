"""When to come back: estimation of change rates, revisit policies, simulation. Pure."""
