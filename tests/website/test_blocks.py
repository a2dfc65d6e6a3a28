"""A page as something to run."""

from __future__ import annotations

import pytest
from website.blocks import blocks, shown, shown_files

PAGE = """# A page

`a/b.csv`:

```csv
text
rain
```

```sh
munjang similar "a b" c  # as it is
munjang lint x.csv # exit 1
munjang train r.toml # 3 minutes
```

```output
old
```

Words between.

```sh
munjang demo
```

```python
print(1)
```

```output
1
```
"""


def test_files_are_found_by_their_names() -> None:
    assert shown_files(PAGE) == {"a/b.csv": "text\nrain\n"}


def test_lines_have_words_exit_codes_and_a_warning_of_their_length() -> None:
    first = shown(PAGE)[0]
    assert [line.words for line in first.lines] == [
        ("munjang", "similar", "a b", "c"),
        ("munjang", "lint", "x.csv"),
        ("munjang", "train", "r.toml"),
    ]
    assert [line.exit_code for line in first.lines] == [0, 1, 0]
    assert [line.takes_long for line in first.lines] == [False, False, True]


def test_an_output_belongs_to_the_block_directly_before_it() -> None:
    first, second, third = shown(PAGE)
    assert first.output is not None
    assert first.output.text == "old\n"
    assert second.output is None
    assert third.output is not None
    assert third.code == "print(1)\n"


@pytest.mark.parametrize("korean", ["# 2분", "# 2 minutes"])
def test_long_lines_are_marked_in_both_languages(korean: str) -> None:
    page = f"```sh\nmunjang train a.toml   {korean}\n```\n"
    assert shown(page)[0].lines[0].takes_long


def test_a_block_knows_its_place() -> None:
    for block in blocks(PAGE):
        assert PAGE[block.start : block.stop] == block.text
