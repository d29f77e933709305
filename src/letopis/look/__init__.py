"""One look at one URL: may it be asked, fetch, read, compare, hand over for recording."""
