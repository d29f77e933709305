"""HTTP for programs: REST, feeds, access, and the application that joins all doors. Loads nothing by itself.

`app` stands on top: it joins REST, feeds, the pages of `letopis.web` and the captures of `letopis.replay`. Those two
import requests, access and sessions from here, so this file must import nothing.
"""
