"""The generators of docs/reference: one module per source of facts (utils/write_reference.py)."""
