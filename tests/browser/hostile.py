"""60 documents that would do something if the page ever took a text for markup, for an address or for a script; written for this test.

Each would call alert, set `window.hit`, or load from elsewhere.invalid.
"""

from __future__ import annotations

OUTSIDE = "//elsewhere.invalid"
DO = "alert(1);window.hit=1"

_TAGS = [
    f"<script>{DO}</script>",
    f"<SCRIPT SRC={OUTSIDE}/a.js></SCRIPT>",
    f"</script><script>{DO}</script>",
    f"<img src=x onerror='{DO}'>",
    f'<img src="{OUTSIDE}/a.png">',
    f"<svg onload='{DO}'>",
    f"<svg><script>{DO}</script></svg>",
    f"<svg><animate onbegin='{DO}' attributeName=x dur=1s>",
    f"<math><mtext><script>{DO}</script></mtext></math>",
    f"<iframe src='javascript:{DO}'></iframe>",
    f"<iframe srcdoc='<script>{DO}</script>'></iframe>",
    f"<object data='{OUTSIDE}/a'></object>",
    f"<embed src='{OUTSIDE}/a'>",
    f"<link rel=stylesheet href='{OUTSIDE}/a.css'>",
    f"<style>@import url({OUTSIDE}/a.css);</style>",
    f"<style>body{{background:url({OUTSIDE}/a.png)}}</style>",
    f"<body onload='{DO}'>",
    f"<details open ontoggle='{DO}'><summary>x</summary></details>",
    f"<video src=x onerror='{DO}'></video>",
    f"<audio autoplay src='{OUTSIDE}/a.ogg'></audio>",
    f"<input autofocus onfocus='{DO}'>",
    f"<select autofocus onfocus='{DO}'></select>",
    f"<marquee onstart='{DO}'>x</marquee>",
    f"<form action='{OUTSIDE}'><button autofocus>x</button></form>",
    f"<base href='{OUTSIDE}/'>",
    f"<meta http-equiv=refresh content='0;url={OUTSIDE}'>",
    f"<a href='javascript:{DO}' id=x>x</a>",
    f"<template><script>{DO}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={DO}>'>",
    f"<textarea></textarea><script>{DO}</script>",
    f"</title><script>{DO}</script>",
    f"</textarea><img src=x onerror='{DO}'>",
    f"<!--><script>{DO}</script>-->",
    f"<![CDATA[<script>{DO}</script>]]>",
    f"<x contenteditable onblur='{DO}' autofocus>",
]
_ATTRIBUTES = [
    f"\" onmouseover='{DO}' x=\"",
    f"' onfocus='{DO}' autofocus tabindex=1 x='",
    f'"><img src=x onerror={DO}>',
    f"'><script>{DO}</script>",
    f"`onmouseover={DO}`",
    f"javascript:{DO}",
    f"JaVaScRiPt:{DO}//",
    f"data:text/html,<script>{DO}</script>",
    f"vbscript:{DO}",
    f"{OUTSIDE}/picture.png",
    f"url({OUTSIDE}/a.png)",
    f"100%;background:url({OUTSIDE}/b.png)",
    f"expression({DO})",
]
_SCRIPTS = [
    f"${{{DO}}}",
    f"{{{{constructor.constructor('{DO}')()}}}}",
    f"';{DO};//",
    f'";{DO};//',
    f"\\';{DO};//",
    f"x\u2028{DO}//",
    '{"__proto__": {"hit": 1}}',
    f"&lt;script&gt;{DO}&lt;/script&gt;",
    f"&#60;img src=x onerror={DO}&#62;",
    f"\\u003cscript\\u003e{DO}\\u003c/script\\u003e",
    f"＜script＞{DO}＜/script＞",
    f"\u202e<script>{DO}</script>",
]

DOCUMENTS = _TAGS + _ATTRIBUTES + _SCRIPTS
