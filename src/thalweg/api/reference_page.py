"""/docs: the routes as one plain page, made here: it needs no network and runs no script."""

from __future__ import annotations

from html import escape
from typing import Any

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Thalweg: the API</title>
<style>
body{{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}
code{{font:13px ui-monospace,monospace}} h2{{margin-top:2em;border-bottom:1px solid #8886}}
summary{{cursor:pointer;padding:.25em 0}} details>*{{margin-left:1.2em}}
b.m{{display:inline-block;width:5em;font:bold 12px ui-monospace,monospace}}
.get{{color:#1a7f37}}.post{{color:#0969da}}.delete{{color:#cf222e}}
td{{padding:.1em .8em .1em 0;vertical-align:top}}
</style><h1>{title} {version}</h1><p>{about}</p>
<p>As <a href="openapi.json">OpenAPI</a>. Try it: <code>curl {base}queries</code></p>
{body}</html>"""


def reference_page(api: dict[str, Any], base: str) -> str:
    by_tag: dict[str, list[str]] = {}
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            tag = (route.get("tags") or ["more"])[0]
            by_tag.setdefault(tag, []).append(_route(path, method, route))
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(of)}" for tag, of in by_tag.items())
    info = api["info"]
    return _PAGE.format(
        title=escape(info["title"]),
        version=escape(info["version"]),
        about=escape(info.get("description", "").strip()),
        base=escape(base),
        body=body,
    )


def _route(path: str, method: str, route: dict[str, Any]) -> str:
    head = f'<b class="m {method}">{method.upper()}</b><code>{escape(path)}</code>'
    about = escape(route.get("description", ""))
    rows = "".join(_parameter(p) for p in route.get("parameters", []))
    rows += "".join(
        f"<tr><td><code>body</code><td>{escape(kind)}<td>"
        for kind in route.get("requestBody", {}).get("content", {})
    )
    table = f"<table>{rows}</table>" if rows else ""
    return f"<details><summary>{head}</summary><p>{about}</p>{table}</details>"


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    kind = schema.get("type") or "/".join(s.get("type", "") for s in schema.get("anyOf", []))
    allowed = f" ({', '.join(map(str, schema['enum']))})" if "enum" in schema else ""
    default = f", default {schema['default']}" if schema.get("default") is not None else ""
    about = escape(f"{kind}{allowed}{default}")
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{about}"
        f"<td>{escape(parameter.get('description', ''))}"
    )
