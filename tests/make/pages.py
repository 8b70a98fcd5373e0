"""What a page has: the data of its script, and packed text."""

import base64
import json
import re
import zlib
from typing import Any


def data_of(page: str) -> dict[str, Any]:
    """Return what the script of a page reads."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data
    return dict(json.loads(data[1]))


def unpacked(text: str) -> str:
    """Return a packed text."""
    return zlib.decompress(base64.b64decode(text)).decode()
