"""A warning counts what a page shows and cleaning does not read."""

from __future__ import annotations

import pytest

from prunus.pages.clean.walk import clean_tree

CHART = "<svg><text>Sales in 2024</text><text>up by 5 %</text></svg>"


@pytest.mark.parametrize(
    ("page", "warning"),
    [
        ("<input name=total><canvas>old</canvas><input type=number>", "not read: 2 form fields, 1 canvas"),
        ("<canvas></canvas><canvas></canvas><iframe src=/map></iframe>", "not read: 2 canvases, 1 embedded page"),
        ("<form><input name=total></form><header><input type=range value=3></header>", "not read: 2 form fields"),
        ("<form action=/go><input name=city></form><form method=post><input></form><footer><input></footer>", ""),
        (CHART, "not read: 1 labelled drawing"),
        ("<iframe srcdoc='<p>Hi'></iframe><embed src=a.pdf>", "not read: 2 embedded pages"),
        (
            "<input value=read><input placeholder=Name><input name=s><input name=your-email><input type=hidden><input type=submit><input type=checkbox><input type=email><input type=password>",
            "",
        ),
        (
            "<div hidden><input name=total></div><canvas hidden></canvas><iframe style='display:none' src=a></iframe>",
            "",
        ),
        ("<canvas width=1 height=1></canvas><iframe width=0 height=0 src=a></iframe>", ""),
        ("<noscript><iframe src=/count></iframe></noscript><iframe src=about:blank></iframe><iframe></iframe>", ""),
        ("<svg><title>Icon</title><path d=M0></svg><svg><text>5</text></svg><template><canvas></template>", ""),
        ("<script>'<canvas>'</script><!-- <canvas> -->", ""),
    ],
)
def test_what_is_seen_and_not_read_is_counted(page: str, warning: str) -> None:
    assert list(clean_tree(f"<p>Words</p>{page}").warnings) == ([warning] if warning else [])
