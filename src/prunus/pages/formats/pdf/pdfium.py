"""The functions of the library pdfium that the reading process calls.

pypdfium2 brings the library, and bindings of all 400 functions; to load those takes longer than to read most files.
This module runs in the reading process, see :mod:`.reader`, and imports nothing from this package.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from typing import Any, Final

_SUFFIXES: Final = (".so", ".dylib", ".dll")
_TYPES: Final = {
    "v": None,
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "L": ctypes.c_ulong,
    "S": ctypes.c_size_t,
    "d": ctypes.c_double,
}

SIGNATURES: Final = {
    "v:": "FPDF_InitLibrary",
    "v:p": "FPDFBitmap_Destroy FPDFPageObj_Destroy "
    "FPDFPage_CloseAnnot FPDFText_ClosePage FPDF_ClosePage FPDF_StructTree_Close",
    "p:p": "FPDFTextObj_GetFont FPDFLink_GetAction FPDFText_LoadPage FPDF_StructTree_GetForPage",
    "p:pp": "FPDFDOC_InitFormFillEnvironment FPDFBookmark_GetDest FPDFBookmark_GetFirstChild "
    "FPDFBookmark_GetNextSibling",
    "p:pi": "FPDFPage_GetAnnot FPDFPage_GetObject FPDFPath_GetPathSegment FPDFText_GetTextObject FPDF_LoadPage "
    "FPDF_StructElement_GetChildAtIndex FPDF_StructTree_GetChildAtIndex",
    "p:pL": "FPDFFormObj_GetObject FPDFPageObj_GetMark",
    "p:iiipi": "FPDFBitmap_CreateEx",
    "v:ppiiiiii": "FPDF_RenderPageBitmap",
    "i:piiiiL": "FPDFBitmap_FillRect",
    "i:ppLp": "FPDFPageObjMark_GetName",
    "i:pppLp": "FPDFPageObjMark_GetParamStringValue",
    "p:pSp": "FPDF_LoadMemDocument64",
    "i:p": "FPDFPageObj_CountMarks "
    "FPDFAnnot_GetFlags FPDFAnnot_GetSubtype FPDFCatalog_IsTagged FPDFFormObj_CountObjects "
    "FPDFPageObj_GetMarkedContentID FPDFPageObj_GetType FPDFPage_GetAnnotCount FPDF_GetFormType "
    "FPDFPage_CountObjects FPDFPathSegment_GetClose FPDFPathSegment_GetType FPDFPath_CountSegments "
    "FPDFTextObj_GetTextRenderMode FPDFText_CountChars FPDF_GetPageCount FPDF_StructElement_CountChildren "
    "FPDF_StructElement_GetMarkedContentIdCount FPDF_StructTree_CountChildren",
    "i:pp": "FPDFPage_RemoveObject FPDFPageObj_GetStrokeWidth "
    "FPDFAnnot_GetFormFieldFlags FPDFAnnot_GetFormFieldType FPDFAnnot_GetOptionCount FPDFAnnot_GetRect "
    "FPDFAnnot_IsChecked FPDFDest_GetDestPageIndex FPDFLink_GetAnnotRect FPDFPageObj_GetMatrix FPDF_GetPageBoundingBox",
    "i:pi": "FPDFPage_Flatten FPDFPage_RemoveAnnot "
    "FPDFPageObj_SetIsActive FPDFText_GetFontWeight FPDF_StructElement_GetMarkedContentIdAtIndex",
    "i:ppp": "FPDFAnnot_GetFontSize FPDFLink_Enumerate FPDFPathSegment_GetPoint FPDFPath_GetDrawMode",
    "i:pip": "FPDFText_GetLooseCharBox FPDFText_GetMatrix",
    "i:pipp": "FPDFText_GetCharOrigin",
    "i:piip": "FPDFText_GetText",
    "i:ppppp": "FPDFPageObj_GetBounds FPDFPageObj_GetFillColor",
    "i:pipppp": "FPDFText_GetFillColor",
    "i:pSp": "FPDFAnnot_GetAttachmentPoints",
    "u:pi": "FPDFText_GetUnicode",
    "d:pi": "FPDFText_GetFontSize",
    "L:": "FPDF_GetLastError",
    "L:p": "FPDFAction_GetType FPDFAnnot_CountAttachmentPoints",
    "L:ppL": "FPDFBookmark_GetTitle FPDFCatalog_GetLanguage FPDF_StructElement_GetAltText FPDF_StructElement_GetType",
    "L:pppL": "FPDFAnnot_GetFormFieldValue FPDFAnnot_GetStringValue FPDFAction_GetURIPath FPDF_GetMetaText",
    "L:pipL": "FPDFAnnot_GetAP",
    "L:pipLp": "FPDFText_GetFontInfo",
    "i:ppi": "FPDFAnnot_IsOptionSelected",
    "L:ppipL": "FPDFAnnot_GetOptionLabel",
}
"""Names of functions by the letters of their result and, after the colon, of their parameters, see ``_TYPES``."""


class FS_RECTF(ctypes.Structure):
    """A rectangle in points."""

    _fields_ = [(name, ctypes.c_float) for name in ("left", "top", "right", "bottom")]


class FS_MATRIX(ctypes.Structure):
    """A matrix, as in PDF files."""

    _fields_ = [(name, ctypes.c_float) for name in "abcdef"]


class Pdfium:
    """The library; its functions are attributes.

    :param folder: folder of the package pypdfium2_raw.
    :raises OSError: the folder holds no library.
    """

    FPDF_ERR_PASSWORD = 4
    FPDF_PAGEOBJ_TEXT, FPDF_PAGEOBJ_PATH, FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_SHADING, FPDF_PAGEOBJ_FORM = 1, 2, 3, 4, 5
    FPDF_SEGMENT_LINETO, FPDF_SEGMENT_MOVETO = 0, 2
    PDFACTION_URI = 3
    FS_RECTF, FS_MATRIX = FS_RECTF, FS_MATRIX

    def __init__(self, folder: str) -> None:
        names = [name for name in os.listdir(folder) if "pdfium" in name and name.endswith(_SUFFIXES)]
        if not names:
            raise OSError(f"{folder} holds no library pdfium")
        self.library: Any = ctypes.CDLL(os.path.join(folder, names[0]))
        for letters, functions in SIGNATURES.items():
            result, _, parameters = letters.partition(":")
            for name in functions.split():
                function = getattr(self.library, name)
                function.restype = _TYPES[result]
                function.argtypes = [_TYPES[letter] for letter in parameters]
                setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"pdfium.{name} is not among the functions that are declared")
