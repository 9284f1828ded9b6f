"""Numbers of attention: sizes that operands have in common, and values that only the device has."""

from __future__ import annotations

import torch

from ..errors import UsageError
from .attend_programs import elements_of
from .checking import refuse_capture
from .row_results import check_number, said

Maybe = torch.Tensor | None


def check_positive(value: float, name: str, remedy: str) -> None:
    """Refuses what is no finite, positive number."""
    check_number(value, name)
    if value <= 0:
        raise UsageError(f"'{name}' must be positive, but got {value}", remedy)


def check_sizes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads_first: bool,
                latent: int) -> None:
    """Keys have the elements of queries, and values the tokens and heads of keys."""
    if elements_of(key)[-1] != elements_of(query)[-1]:
        raise UsageError(f"'key' must have the {elements_of(query)[-1]} elements of a head of "
                         f"'query', but got {said(key)}", "scores are their products")
    if not latent and value.shape[:-1] != key.shape[:-1]:
        raise UsageError(f"'value' must have the tokens and heads of 'key', "
                         f"{list(key.shape[:-1])}, but got {said(value)}",
                         "each key has a value")
    heads, sharing = key.shape[1 if heads_first else -2], query.shape[-2]
    if sharing % heads if heads else sharing:
        raise UsageError(f"'query' must have a multiple of the {heads} heads of 'key', but got "
                         f"{said(query)}", "as many heads of queries share each head of keys")


def check_ranges(key: torch.Tensor, lengths: Maybe, pages: Maybe, heads_first: bool) -> None:
    """Refuses keys that do not exist, which kernels take for zeros or leave out. Waits for the
    device."""
    if lengths is None:
        return
    refuse_capture(lengths, "lengths")
    tokens = key.shape[1] if pages is None else key.shape[2 if heads_first else 1]
    most = tokens if pages is None else pages.shape[1] * tokens
    for sequence, length in enumerate(lengths.tolist()):
        if not 0 <= length <= most:
            raise UsageError(f"'lengths' must be from 0 to {most}, but sequence {sequence} has "
                             f"{length}", "give it more pages" if pages is not None else
                             "pass as many keys")
        used = [] if pages is None else pages[sequence, :-(-length // tokens)].tolist()
        for place, page in enumerate(used):
            if not 0 <= page < key.shape[0]:
                raise UsageError(f"'pages' must be from 0 to {key.shape[0] - 1}, but page {place} "
                                 f"of sequence {sequence} is {page}",
                                 "a page is a place in 'key' and 'value'")


def check_factors(query: torch.Tensor, **factors: Maybe) -> None:
    """Refuses factors that are not positive beside queries of 8 bits, whose kernels need such.
    Waits for the device."""
    for name, numbers in factors.items():
        if numbers is None or query.dtype != torch.float8_e4m3fn:
            continue
        refuse_capture(numbers, name)
        wrong = ~((numbers > 0) & numbers.isfinite())
        if wrong.any():
            raise UsageError(f"'{name}' must be positive beside queries of float8_e4m3fn, but got "
                             f"{float(numbers[wrong][0])}", "they are scales of codes")
