"""One module a family of verbs; imported only when one of them is called."""
