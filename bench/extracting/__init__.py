"""Documents of many formats whose text is known, made by libraries of others."""
