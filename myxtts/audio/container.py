"""Whether a sound file is whole, told by its own headers: WAV sizes, Ogg's last page, MP3's Xing header.

In: a path.
Out: what is missing, in words. FLAC has no such mark before its end: decoding shows it.
"""

import struct
from pathlib import Path

TAIL_BYTES = 1 << 17  # holds the last page of an Ogg file (at most 65,307 bytes) with room


def missing_part(path: Path) -> str:
    """What the headers promise beyond the end of the file; empty when it is whole or says nothing about it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
            missing = _missing_riff(file, size)
        elif head[:4] == b"RF64" and head[8:12] == b"WAVE":  # sizes of 64 bits stand in the first chunk
            missing = max(0, 8 + struct.unpack("<Q", (file.read(16) + bytes(16))[8:16])[0] - size)
        elif head[:4] == b"FORM":
            missing = max(0, 8 + struct.unpack(">I", head[4:8])[0] - size)
        elif head[:4] == b"OggS":
            file.seek(max(0, size - TAIL_BYTES))
            return "" if _ends_with_last_page(file.read()) else "the file ends before its last page"
        elif head[:3] == b"ID3" or head[:1] == b"\xff":
            missing = _missing_mp3(file, head, size)
        else:
            return ""
    return f"the header promises {missing} bytes more than the file holds" if missing else ""


def _missing_riff(file, size: int) -> int:
    while len(chunk := file.read(8)) == 8:
        name, length = struct.unpack("<4sI", chunk)
        if name == b"data":
            # A program that wrote into a pipe could not know the length and left a very large one.
            return 0 if length >= 0x7FFFF000 else max(0, file.tell() + length - size)
        if file.tell() + length > size:
            return file.tell() + length - size
        file.seek(length + length % 2, 1)
    return 0


def _ends_with_last_page(tail: bytes) -> bool:
    start = tail.rfind(b"OggS")
    page = tail[start:]
    if start < 0 or len(page) < 27 or not page[5] & 0x04:
        return False
    segments = page[26]
    return len(page) >= 27 + segments + sum(page[27 : 27 + segments])


def _missing_mp3(file, head: bytes, size: int) -> int:
    begin = 0
    if head[:3] == b"ID3":  # four bytes of seven bits each
        begin = 10 + sum(byte << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
    file.seek(begin)
    frame = file.read(256)
    mark = max(frame.find(b"Xing"), frame.find(b"Info"))
    if mark < 0 or len(frame) < mark + 16:
        return 0
    (flags,) = struct.unpack(">I", frame[mark + 4 : mark + 8])
    if not flags & 2:
        return 0
    field = mark + 8 + (4 if flags & 1 else 0)
    (promised,) = struct.unpack(">I", frame[field : field + 4])
    missing = begin + promised - size
    return missing if missing > promised // 1000 else 0  # some encoders count a frame too many
