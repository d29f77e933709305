"""The same page as it was and as each player shows it, side by side in one small picture."""

from __future__ import annotations

from base64 import b64decode, b64encode

from playwright.sync_api import Page

_WIDTH = 300
_DRAW = """async ([width, pictures]) => {
  const height = Math.round(width * 0.8), edge = 6, caption = 20;
  const pane = new OffscreenCanvas(pictures.length * (width + edge), height + caption), pen = pane.getContext("2d");
  pen.fillStyle = "#fff"; pen.fillRect(0, 0, pane.width, pane.height);
  pen.font = "13px sans-serif"; pen.fillStyle = "#222"; pen.imageSmoothingQuality = "high";
  for (const [at, [name, text]] of pictures.entries()) {
    const left = at * (width + edge);
    pen.fillText(name, left + 2, 14);
    pen.strokeRect(left + 0.5, caption + 0.5, width - 1, height - 1);
    if (!text) continue;
    const shown = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (char) => char.charCodeAt(0))]));
    pen.drawImage(shown, 0, 0, shown.width, shown.width * 0.8, left, caption, width, height);
  }
  const bytes = new Uint8Array(await (await pane.convertToBlob({ type: "image/webp", quality: 0.8 })).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""


def side_by_side(blank: Page, pictures: dict[str, bytes]) -> bytes:
    """WebP of the upper part of all of them, with their names."""
    named = [[name, b64encode(picture).decode()] for name, picture in pictures.items()]
    return b64decode(blank.evaluate(_DRAW, [_WIDTH, named]))
