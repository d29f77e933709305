"""Parameters that tell who came and from where, never which page it is."""

from __future__ import annotations

import re

# A session id is long and random; short values of the ambiguous names (`sid=12`) may choose the page.
_TRACKING = re.compile(
    r"(?:utm_\w+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|ysclid|twclid|ttclid|igshid|igsh|li_fat_id"
    r"|mc_[ce]id|mkt_tok|_hs(?:enc|mi)|hsctatracking|vero_id|oly_(?:anon|enc)_id|rb_clickid|s_cid|zanpid|sznclid"
    r"|_openstat|_ga|_gl|pk_\w+|mtm_\w+|matomo_\w+|wickedid|epik|srsltid)(?:=.*)?",
    re.IGNORECASE | re.ASCII,
)
_SESSION = re.compile(
    r"(?:phpsessid|jsessionid|aspsessionid\w*|cfid|cftoken|oscsid|zenid|osclass|sessionid|session_id|sess_id)(?:=.*)?"
    r"|(?:sid|s|session|sess)=(?:[0-9a-f]{24,}|[0-9a-z]{26,})",
    re.IGNORECASE | re.ASCII,
)
_IN_PATH = re.compile(r";jsessionid=[^/?#;]*|/\((?:[A-Z]\([0-9a-z]{24}\))+\)(?=/)", re.IGNORECASE)


def without_tracking(url: str) -> str:
    """A normalised address without session ids and tracking parameters; normal again."""
    head, mark, query = url.partition("?")
    if ";" in head or "(" in head:
        head = _IN_PATH.sub("", head)
    if not mark:
        return head
    kept = "&".join(part for part in query.split("&") if not is_tracking(part))
    return f"{head}?{kept}" if kept else head


def is_tracking(parameter: str) -> bool:
    """Whether `name=value` is a session id or a tracking mark."""
    return bool(_TRACKING.fullmatch(parameter) or _SESSION.fullmatch(parameter))
