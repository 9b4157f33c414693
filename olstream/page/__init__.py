"""The status page and the report: documents in, one HTML page that needs nothing else out.

`view` reads the document, `html` writes elements, `curves` draws; `service` and `predictions` are the two pages.
"""
