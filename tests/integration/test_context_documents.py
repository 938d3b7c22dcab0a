"""`--context` with files that are converted to text: HTML, Word, Excel and PDF."""

from __future__ import annotations

import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import openpyxl
import pytest

from moot.plugins.importing import read_context
from moot.plugins.importing.read_context import read_documents, read_upload
from moot.state.errors import ConfigError, InputError

WORD = (
    '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body><w:p><w:r><w:t>Checkout fails twice a week.</w:t></w:r></w:p></w:body></w:document>"
)
TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
LINKS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
    'officeDocument" Target="word/document.xml"/></Relationships>'
)
PDF = """%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length {length}>>stream
{stream}
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
"""


def _write_word(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("[Content_Types].xml", TYPES)
        file.writestr("_rels/.rels", LINKS)
        file.writestr("word/document.xml", WORD)


def _write_excel(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Checkout fails twice a week.", 2])
    book.save(path)


def _write_pdf(path: Path, text: str = "(Checkout fails twice a week.)") -> None:
    stream = f"BT /F1 12 Tf 20 100 Td {text} Tj ET"
    body = PDF.format(length=len(stream), stream=stream)
    offsets = [body.index(f"{number} 0 obj") for number in range(1, 6)]
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"trailer<</Root 1 0 R/Size 6>>\nstartxref\n{len(body)}\n%%EOF\n"
    path.write_text(f"{body}xref\n0 6\n0000000000 65535 f \n{table}{end}", encoding="latin-1")


def _write_html(path: Path) -> None:
    path.write_text("<h1>Incidents</h1><p>Checkout fails twice a week.</p><script>x()</script>", "utf-8")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        pytest.param("a.docx", _write_word, marks=pytest.mark.slow),
        ("a.xlsx", _write_excel),
        pytest.param("a.pdf", _write_pdf, marks=pytest.mark.slow),
        ("a.html", _write_html),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_documents_are_converted_to_text(name: str, write: object, tmp_path: Path) -> None:
    path = tmp_path / name
    assert callable(write)
    write(path)
    (document,) = read_documents([path])
    assert document["name"] == name
    assert "Checkout fails twice a week." in document["content"]
    assert "x()" not in document["content"]


@pytest.mark.slow
def test_uploads_are_converted_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_pdf(tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()

    def fail(*_: object) -> None:
        raise AssertionError("the file was converted in this process")

    monkeypatch.setattr(read_context, "_document_text", fail)
    assert "Checkout fails twice a week." in read_upload("a.pdf", data)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InputError, match=r"'a\.pdf' could not be converted: it may be damaged"):
        read_upload("a.pdf", data)


@pytest.mark.slow
def test_uploads_are_converted_within_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_pdf(tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    assert "Checkout fails twice a week." in read_upload("../a.pdf", data)
    with pytest.raises(InputError, match=r"cannot read context from 'b.docx'"):
        read_upload("b.docx", b"\x00\x01 no document")
    monkeypatch.setattr(read_context, "UPLOAD_TIMEOUT_S", 0.01)
    with pytest.raises(InputError, match=r"'a.pdf' could not be converted to text within 0.01 seconds"):
        read_upload("a.pdf", data)


BINARY_DATA = bytes(range(256)) * 20


@pytest.mark.parametrize("name", ["broken.pdf", "broken.docx", "broken.xlsx"])
def test_a_damaged_document_is_refused_with_advice(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BINARY_DATA)
    with pytest.raises(InputError, match=r"the file is damaged, .* save it again") as refused:
        read_documents([tmp_path / name])
    assert str(refused.value).startswith(f"cannot read context from {str(tmp_path / name)!r}: ")
    assert "Converter" not in str(refused.value)


@pytest.mark.parametrize("name", ["a.html", "a.htm", "a.md", "a.txt", "a.diff"])
def test_binary_data_in_text_files_is_refused(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(BINARY_DATA)
    with pytest.raises(InputError, match=r"it is not (UTF-8 )?text"):
        read_documents([tmp_path / name])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["a.html", "a.txt"])
@pytest.mark.parametrize(
    "data", [b"text\0with a zero byte", b"\x01\x02\x03\x04 ok"], ids=["zero byte", "control characters"]
)
def test_text_with_control_characters_is_refused_as_binary(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="it is binary data, not text"):
        read_documents([tmp_path / name])


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.xlsx", "a.html", "a.md"])
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"the file (is empty|contains no text)$"):
        read_documents([tmp_path / name])


def test_a_binary_upload_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot read context from 'notes\.txt': it is binary data"):
        read_upload("notes.txt", b"\0\1\2")


def test_html_is_decoded_with_its_declared_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes('<meta charset="iso-8859-1"><p>Café'.encode("latin-1"))
    (document,) = read_documents([tmp_path / "a.html"])
    assert document["content"] == "Café"


def test_a_document_that_unpacks_to_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_context, "MAX_UNPACKED_BYTES", 1_000)
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", "A" * 2_000)
    with pytest.raises(InputError, match="unpacks to more than 1,000 bytes"):
        read_documents([tmp_path / "bomb.docx"])


def test_the_error_names_the_missing_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "moot.plugins.importing.document_converters", raising=False)
    monkeypatch.delattr("moot.plugins.importing.document_converters", raising=False)
    monkeypatch.setitem(sys.modules, "mammoth", None)
    _write_html(tmp_path / "a.html")
    with pytest.raises(ConfigError, match=r"pip install 'moot\[documents\]'"):
        read_documents([tmp_path / "a.html"])


def _write_book(path: Path, cells: dict[str, str]) -> None:
    book = openpyxl.Workbook()
    for place, value in cells.items():
        book.active[place] = value
    book.save(path)


def test_a_far_cell_in_a_sheet_costs_no_space_for_the_cells_before_it(tmp_path: Path) -> None:
    _write_book(tmp_path / "far.xlsx", {"A1": "Near", "XFD1048576": "Far"})
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="more than 500,000 cells"):
            read_documents([tmp_path / "far.xlsx"])
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_rows_of_a_sheet_become_a_markdown_table(tmp_path: Path) -> None:
    _write_book(tmp_path / "a.xlsx", {"A1": "Month", "B1": "Cost", "A3": "May | June", "B3": "4"})
    (document,) = read_documents([tmp_path / "a.xlsx"])
    assert document["content"] == "## Sheet\n| Month | Cost |\n| --- | --- |\n| May \\| June | 4 |"


@pytest.mark.slow
def test_an_upload_that_needs_too_much_processor_time_is_refused(tmp_path: Path) -> None:
    rows = "<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 550_000
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", TYPES)
        file.writestr("_rels/.rels", LINKS)
        file.writestr("word/document.xml", WORD.replace("</w:body>", f"{rows}</w:body>"))
    started = time.monotonic()
    with pytest.raises(InputError, match=r"too much time or memory|to text within"):
        read_upload("bomb.docx", (tmp_path / "bomb.docx").read_bytes())
    assert time.monotonic() - started < read_context.UPLOAD_TIMEOUT_S + 5
