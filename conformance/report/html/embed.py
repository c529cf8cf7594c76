#!/usr/bin/env python3
"""Writes the page as a C++ source: what stands before its data, and after (page_parts.h).

The style and the script are allowed by their hashes: nothing else on the page is ever run or loaded.
"""
import base64
import hashlib
import sys

_CHUNK = 8000  # compilers limit one literal


def allowed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def literal(text):
    parts = [text[i:i + _CHUNK] for i in range(0, len(text), _CHUNK)]
    return "\n".join(f'    R"~page~({part})~page~"' for part in parts)


def main(page, style, *scripts):
    read = lambda path: open(path, encoding="utf-8").read()
    css, js = read(style), "".join(read(script) for script in scripts)
    assert "</" not in css and "</script" not in js
    policy = (f"default-src 'none'; style-src {allowed(css)}; script-src {allowed(js)}; "
              "base-uri 'none'; form-action 'none'")
    text = read(page).replace("@POLICY@", policy).replace("@STYLE@", css).replace("@SCRIPT@", js)
    before, after = text.split("@DATA@")
    print('#include "conformance/report/html/page_parts.h"\n\nnamespace shardproof {\n')
    print(f"const std::string_view kBeforeData =\n{literal(before)};\n")
    print(f"const std::string_view kAfterData =\n{literal(after)};\n\n}}  // namespace shardproof")


main(*sys.argv[1:])
