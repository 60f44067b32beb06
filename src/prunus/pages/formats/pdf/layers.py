"""Remove what a PDF page holds on layers that are off (optional content): no reader shows it.

pdfium does not say which layers are off, but leaves them out when it draws a page. So a layer is drawn alone, small and
on grey: where nothing shows, it is off. This module runs in the reading process, see :mod:`.reader`, and imports
nothing from this package.
"""

from __future__ import annotations

import ctypes
import re
import zlib

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

_SIDE: Final = 400  # pixels of a drawn page
_GREY: Final = 0xFF808080
_BGR: Final = 2  # a format of pictures: three bytes a pixel
_MAX_OBJECTS: Final = 200_000  # objects of a page
_MAX_LAYERS: Final = 20  # layers of a page that are drawn; others stay
_PACKED: Final = re.compile(rb"/ObjStm\b[^\0]{0,400}?stream\r?\n")
_MOST: Final = 1 << 20  # bytes of a packed stream that are looked at


def has_layers(data: bytes) -> bool:
    """Tell whether a file declares layers, in the open or in a packed stream of objects."""
    if b"/OCProperties" in data:
        return True
    view = memoryview(data)
    for match in _PACKED.finditer(data):
        try:
            found = zlib.decompressobj().decompress(view[match.end() : match.end() + _MOST], _MOST)
        except zlib.error:  # encrypted, or packed otherwise
            continue
        if b"/OCProperties" in found:
            return True
    return False


def remove_hidden(raw: Any, page: Any, shown: set[str], check_time: Callable[[], None]) -> None:
    """Remove the objects of a page that are on layers which are off.

    :param shown: names of layers that are known to be on; gets those of this page.
    """
    objects = [raw.FPDFPage_GetObject(page, at) for at in range(min(raw.FPDFPage_CountObjects(page), _MAX_OBJECTS))]
    layers: dict[str, list[Any]] = {}
    for handle in objects:
        name = _layer(raw, handle)
        if name and name not in shown and (name in layers or len(layers) < _MAX_LAYERS):
            layers.setdefault(name, []).append(handle)
    for name, held in layers.items():
        check_time()
        for handle in objects:
            raw.FPDFPageObj_SetIsActive(handle, 0)
        for handle in held:
            raw.FPDFPageObj_SetIsActive(handle, 1)
        if any(_is_unseen_text(raw, handle) for handle in held) or _shows(raw, page):
            shown.add(name)
    for handle in objects if layers else ():
        raw.FPDFPageObj_SetIsActive(handle, 1)
    for name, held in layers.items():
        for handle in held if name not in shown else ():
            raw.FPDFPage_RemoveObject(page, handle)
            raw.FPDFPageObj_Destroy(handle)


def _layer(raw: Any, handle: Any) -> str:
    """Return the name of the layer that an object is on; '' for none."""
    for at in range(max(raw.FPDFPageObj_CountMarks(handle), 0)):
        mark = raw.FPDFPageObj_GetMark(handle, at)
        buffer, size = (ctypes.c_char * 512)(), ctypes.c_ulong()
        raw.FPDFPageObjMark_GetName(mark, buffer, 512, ctypes.byref(size))
        if bytes(buffer.raw[: size.value]).decode("utf-16-le", "replace").rstrip("\0") != "OC":
            continue
        raw.FPDFPageObjMark_GetParamStringValue(mark, b"Name\0", buffer, 512, ctypes.byref(size))
        return bytes(buffer.raw[: min(size.value, 512)]).decode("utf-16-le", "replace").rstrip("\0")
    return ""


def _is_unseen_text(raw: Any, handle: Any) -> bool:
    """Tell whether an object is text without ink, as over the picture of a scanned page."""
    is_text = raw.FPDFPageObj_GetType(handle) == raw.FPDF_PAGEOBJ_TEXT
    return bool(is_text and raw.FPDFTextObj_GetTextRenderMode(handle) in (3, 7))


def _shows(raw: Any, page: Any) -> bool:
    """Tell whether anything of a page is drawn."""
    picture = (ctypes.c_char * (3 * _SIDE * _SIDE))()
    bitmap = raw.FPDFBitmap_CreateEx(_SIDE, _SIDE, _BGR, picture, 3 * _SIDE)
    raw.FPDFBitmap_FillRect(bitmap, 0, 0, _SIDE, _SIDE, _GREY)
    raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, _SIDE, _SIDE, 0, 0)
    raw.FPDFBitmap_Destroy(bitmap)
    return picture.raw.count(b"\x80") < len(picture)
