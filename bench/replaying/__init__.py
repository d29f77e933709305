"""The same captures shown by Letopis, pywb and ReplayWeb.page in Chromium, and what each of them showed."""
