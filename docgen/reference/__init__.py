"""The generators of docs/reference: one module per source of facts (docgen/write_reference.py)."""
