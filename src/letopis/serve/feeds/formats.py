"""Atom and RSS."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from letopis.model import from_millis, rfc3339
from letopis.serve.feeds.entries import Entry, Feed
from letopis.serve.stamps import http_stamp

ATOM = "application/atom+xml; charset=utf-8"
RSS = "application/rss+xml; charset=utf-8"
_XML = '<?xml version="1.0" encoding="utf-8"?>\n'


def atom(feed: Feed) -> str:
    """RFC 4287."""
    updated = rfc3339(from_millis(max((entry.time for entry in feed.entries), default=0)))
    entries = "".join(map(_atom_entry, feed.entries))
    return (
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(feed.title)}</title>'
        f"<id>{escape(feed.own)}</id><updated>{updated}</updated><author><name>Letopis</name></author>"
        f'<link rel="self" href={quoteattr(feed.own)}/><link rel="alternate" href={quoteattr(feed.link)}/>'
        f"{entries}</feed>\n"
    )


def _atom_entry(entry: Entry) -> str:
    time = rfc3339(from_millis(entry.time))
    return (
        f"<entry><title>{escape(entry.title)}</title><id>{escape(entry.key)}</id><updated>{time}</updated>"
        f'<published>{time}</published><link rel="alternate" href={quoteattr(entry.link)}/>'
        f'<content type="html">{escape(entry.html)}</content></entry>'
    )


def rss(feed: Feed) -> str:
    """RSS 2.0."""
    items = "".join(map(_rss_item, feed.entries))
    return (
        f'{_XML}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{escape(feed.title)}</title><link>{escape(feed.link)}</link>"
        f"<description>{escape(feed.title)}</description>"
        f'<atom:link rel="self" type="application/rss+xml" href={quoteattr(feed.own)}/>{items}</channel></rss>\n'
    )


def _rss_item(entry: Entry) -> str:
    return (
        f"<item><title>{escape(entry.title)}</title><link>{escape(entry.link)}</link>"
        f'<guid isPermaLink="false">{escape(entry.key)}</guid><pubDate>{http_stamp(entry.time)}</pubDate>'
        f"<description>{escape(entry.html)}</description></item>"
    )
