"""When to revisit pages: estimation of change rates, revisit policies, simulation. Pure."""
