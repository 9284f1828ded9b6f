"""Programs without MLIR text.

    builder = fp4.Builder()
    f = builder.function("linear")
    x, w = f.argument("x", ("M", 256)), f.argument("w", (128, 256))
    qx, qw = (f.quantize(v, "nvfp4", amax=f.amax(v), layout="tiled_128x4") for v in (x, w))
    f.returns(y=f.matmul(qx, qw, alpha=f.matmul_alpha(qx, qw), epilogue=["relu"]))
    linear = fp4.compile(builder)

Each method of a FunctionBuilder adds the operation of its name (docs/reference/fp4-ops.md), and
nothing else: no amax, no swizzle and no alpha that the program does not ask for. The types of
results follow from the operands. Whatever else a program must keep, the compiler verifies; its
diagnostics have the line of Python that added the operation.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from . import _mlir as m
from ._values import (
    ScaledValue,
    Value,
    block_attribute,
    check_gemm,
    count_of,
    groups_attribute,
    matrix_shape,
    rows_of_tiles,
    sizes_of,
)
from .errors import UsageError
from .formats import find_format
from .manifest import ELEMENTS, SCALE_LAYOUTS, Type

__all__ = ["Builder", "FunctionBuilder", "Hadamard", "ScaledValue", "Value"]

_SCALAR = Type((), "f32")
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_Place = tuple[str, int]  # a file and a line


@dataclasses.dataclass(frozen=True)
class Hadamard:
    """A random Hadamard transform of groups of `size` elements (docs/reference/fp4-ops.md)."""

    size: int = 16
    sign_mask: int = 0xD7E8
    arithmetic: str = "butterfly"  #: or "tensor_core"
    rounding: str = "bf16"  #: or "none", which only a quantizer can have

    def _facts(self) -> tuple[int, int, str]:
        return (m.integer(self.size, "'size'"), m.integer(self.sign_mask, "'sign_mask'"),
                m.word(self.arithmetic, "'arithmetic'"))

    def _attribute(self) -> str:
        size, mask, arithmetic = self._facts()
        return (f"#fp4.hadamard<size = {size}, sign_mask = {mask}, arithmetic = {arithmetic}, "
                f"rounding = {m.word(self.rounding, 'rounding')}>")

    def _operation(self, dimension: int) -> dict[str, str]:
        """The attributes of fp4.hadamard and fp4.hadamard_amax."""
        if self.rounding != "bf16":
            raise UsageError(f"'rounding' must be bf16 here, but got {self.rounding!r}",
                             "pass the transform to quantize, which can keep fp32")
        size, mask, arithmetic = self._facts()
        axis = m.integer(dimension, "'dimension'")
        return {"size": f"{size} : i64", "dimension": f"{axis} : i64",
                "sign_mask": f"{mask} : i64",
                "arithmetic": f"#fp4.hadamard_arithmetic<{arithmetic}>"}


class Builder:
    """A program of one or more functions, which fp4.compile takes in place of its text."""

    def __init__(self) -> None:
        self.functions: dict[str, FunctionBuilder] = {}

    def function(self, name: str) -> FunctionBuilder:
        """A new function. A UsageError where there is one of that name."""
        m.quote(name, "the name of a function")
        if not name or name in self.functions:
            raise UsageError(f"the name of a function must be a new one, but got {name!r}")
        self.functions[name] = FunctionBuilder(name)
        return self.functions[name]

    def text(self, *, locations: bool = False) -> str:
        """The program as MLIR text. With `locations` every operation has the place in Python that
        added it. A UsageError where a function does not return, or there is none."""
        if not self.functions:
            raise UsageError("a program must have a function, but the builder has none",
                             "add one with builder.function(name)")
        return "".join(function.text(locations=locations) for function in self.functions.values())

    def __str__(self) -> str:
        return self.text()


class FunctionBuilder:
    """A function that is being built; Builder.function makes it. Arguments and operations are added
    in order, and `returns` ends it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._place = _caller()
        self._arguments: dict[str, str] = {}
        self._lines: list[tuple[str, _Place]] = []
        self._places: list[_Place] = []  # of the arguments
        self._names: set[str] = set()  # of values, in the text
        self._results: list[str] | None = None

    #===--- Arguments and results ------------------------------------------===#

    def argument(self, name: str, shape: Sequence[int | str], element: str = "bf16",
                 layout: str = "linear", *, strided: bool = False) -> Value:
        """A new argument.

        Args:
            name: what messages, the manifest and fp4-run call it.
            shape: sizes in elements. A str is the name of a size that is known when the function is
                called: rows, or columns of what quantizers and matmuls take. Arguments with the
                same name must have the same size (fp4.dims).
            element: "bf16", "f16", "f32", "i64", or that of a format: "f4E2M1FN", "f8E4M3FN", ...
            layout: of block scales: "linear" (row-major) or "tiled_128x4".
            strided: rows may have gaps between them, multiples of 16 bytes from one to the next.
        """
        self._check_open()
        attributes = f"fp4.name = {m.quote(name, 'the name of an argument')}"
        if not name or name in self._arguments:
            raise UsageError(f"the name of an argument must be a new one, but got {name!r}")
        sizes, dims = sizes_of(shape, name)
        if any(dims):
            quoted = ", ".join(m.quote(dim, "the name of a size") for dim in dims)
            attributes += f", fp4.dims = [{quoted}]"
        kind = Type(sizes, m.one_of(element, "element", ELEMENTS),
                    m.one_of(layout, "layout", SCALE_LAYOUTS))
        if strided:
            attributes += ", fp4.strided"
        value = self._value(kind, name)
        self._arguments[name] = f"{value.name}: {m.tensor(kind)} {{{attributes}}}"
        self._places.append(_caller())
        return value

    def scaled(self, data: Value, scales: Value, format: str = "nvfp4", *,
               amax: Value | None = None, recipe: str | None = None) -> ScaledValue:
        """A ScaledValue of members that exist already, such as arguments. The function gets no
        operation."""
        find_format(format)
        self._use(data, "'data'")
        self._use(scales, "'scales'")
        if amax is not None:
            self._use(amax, "'amax'")
        return ScaledValue(data, scales, format, amax, recipe)

    def returns(self, *values: Value | ScaledValue, **named: Value | ScaledValue) -> None:
        """Ends the function. `returns(y=v)` gives a result the name that messages and the manifest
        use. A quantized matrix is two results, its data and its scales: `returns(q=v)` calls
        them "q" and "q_scales"."""
        self._check_open()
        results: list[tuple[str, Value]] = []
        for name, value in (*(("", value) for value in values), *named.items()):
            if isinstance(value, ScaledValue):
                results += [(name, value.data), (name and f"{name}_scales", value.scales)]
            else:
                results.append((name, value))
        used = [self._use(value, f"result {i}") for i, (_, value) in enumerate(results)]
        types = [m.tensor(value.type) for _, value in results]
        self._results = [
            f"{kind} {{fp4.name = {m.quote(name, 'the name of a result')}}}" if name else kind
            for kind, (name, _) in zip(types, results)]
        line = f"return {', '.join(used)} : {', '.join(types)}" if used else "return"
        self._lines.append((line, _caller()))

    #===--- Maxima and transforms ------------------------------------------===#

    def amax(self, input: Value, *, nan: str = "drop", per_row: bool = False,
             per_column: bool = False, groups: Sequence[int] | None = None,
             offsets: Value | None = None) -> Value:
        """fp4.amax: the largest magnitude of `input`, R x K, an f32 scalar; with `per_row` of each
        row, [R]; with `per_column` of each column, [K]; with `groups` or `offsets` of each of G
        groups of rows, [G] (see `quantize`). `nan` is "drop" or "propagate"."""
        used, (rows, columns) = self._use(input, "'input'"), matrix_shape(input, "'input'")
        policy = m.word(nan, "'nan'")
        attributes = {} if nan == "drop" else {"nan": f"#fp4.nan_policy<{policy}>"}
        attributes |= m.flags(per_row=per_row, per_column=per_column) | groups_attribute(groups)
        count = count_of(groups, offsets)
        lines = (rows,) if per_row else (columns,) if per_column else ()
        kind = Type(lines if count is None else (count,), "f32")
        clause, type = self._offsets(offsets)
        return self._one(f"fp4.amax {used}{clause}{m.dictionary(attributes)} : "
                         f"{m.tensor(input.type)}{type} -> {m.tensor(kind)}", kind)

    def hadamard(self, input: Value, transform: Hadamard = Hadamard(), *,
                 dimension: int = 1) -> Value:
        """fp4.hadamard: transforms groups of elements of `input`, R x K of bf16, along `dimension`,
        0 or 1. The result has the shape and the element of `input`."""
        used = self._use(input, "'input'")
        attributes = m.check(transform, "'transform'", Hadamard)._operation(dimension)
        kind = m.tensor(input.type)
        return self._one(f"fp4.hadamard {used}{m.dictionary(attributes)} : {kind} -> {kind}",
                         input.type)

    def hadamard_amax(self, input: Value, transform: Hadamard = Hadamard(), *,
                      dimension: int = 1) -> tuple[Value, Value]:
        """fp4.hadamard_amax: the largest magnitudes of `input` and of its transform along
        `dimension`, f32 scalars."""
        used = self._use(input, "'input'")
        attributes = m.check(transform, "'transform'", Hadamard)._operation(dimension)
        scalar = m.tensor(_SCALAR)
        before, after = self._emit(
            f"fp4.hadamard_amax {used}{m.dictionary(attributes)} : {m.tensor(input.type)} -> "
            f"{scalar}, {scalar}", [_SCALAR, _SCALAR])
        return before, after

    #===--- Quantizing -----------------------------------------------------===#

    def quantize(self, input: Value, format: str = "nvfp4", *, amax: Value | None = None,
                 recipe: str | None = None, layout: str = "linear", columnwise: bool = False,
                 rng: Value | None = None, block: Sequence[int] | None = None,
                 hadamard: Hadamard | None = None, per_row: bool = False,
                 groups: Sequence[int] | None = None, offsets: Value | None = None,
                 unspecified_rows: bool = False) -> ScaledValue:
        """fp4.quantize with one output.

        Args:
            input: R x K of bf16, f16 or f32.
            amax: a scalar, exactly for recipes with a tensor scale: those of nvfp4 except the
                one-level ones; with `per_row` a number for each row of the output.
            recipe: the order and the guards of the arithmetic, "transformer_engine, guard = none"
                (docs/reference/numerics.md); None for the default of the format.
            layout: of the scales, "linear" or "tiled_128x4", which a matmul reads.
            columnwise: blocks run along the rows, and the output is transposed, K x R.
            rng: i64 [2], the seed and the offset of stochastic rounding; None rounds to nearest.
            block: (16, 16) shares nvfp4 scales in squares; None for 1 x 16 or 1 x 32.
            hadamard: transforms the input along the contraction axis first.
            groups: rows of each of G matrices that are stacked, each of which has an amax of its
                own, [G], and whose tiled scales begin anew.
            offsets: i64 [G + 1], or [G, 2] of ranges: the same where only the device knows the
                rows. Outputs are rowwise then.
            unspecified_rows: beside offsets, codes of rows of no group are not written.
        """
        attributes = groups_attribute(groups) | m.flags(unspecified_rows=unspecified_rows)
        if m.check(columnwise, "'columnwise'", bool):
            attributes["outputs"] = "#fp4.outputs<columnwise>"
        if hadamard is not None:
            name = "columnwise_hadamard" if columnwise else "hadamard"
            attributes[name] = m.check(hadamard, "'hadamard'", Hadamard)._attribute()
        shape = matrix_shape(input, "'input'")
        data, scales = self._quantize(input, format, recipe, layout,
                                      {"amax": amax, "rng": rng, "offsets": offsets},
                                      [shape[::-1] if columnwise else shape],
                                      attributes | block_attribute(block)
                                      | m.flags(per_row=per_row),
                                      rows_of_tiles(groups, offsets, shape[0]), columnwise)
        return ScaledValue(data, scales, format, amax, recipe)

    def quantize_both(self, input: Value, format: str = "nvfp4", *, amax: Value | None = None,
                      columnwise_amax: Value | None = None, recipe: str | None = None,
                      layout: str = "linear", rng: Value | None = None,
                      block: Sequence[int] | None = None, hadamard: Hadamard | None = None,
                      columnwise_hadamard: Hadamard | None = None,
                      per_row: bool = False) -> tuple[ScaledValue, ScaledValue]:
        """fp4.quantize with two outputs, rowwise (R x K) and columnwise (K x R), in one pass over
        the input. Without `columnwise_amax`, `amax` holds for both. The other arguments are those
        of `quantize`."""
        attributes = {"outputs": "#fp4.outputs<both>"}
        for name, transform in (("hadamard", hadamard),
                                ("columnwise_hadamard", columnwise_hadamard)):
            if transform is not None:
                attributes[name] = m.check(transform, f"'{name}'", Hadamard)._attribute()
        shape = matrix_shape(input, "'input'")
        operands = {"amax": amax, "columnwise_amax": columnwise_amax, "rng": rng}
        values = self._quantize(input, format, recipe, layout, operands, [shape, shape[::-1]],
                                attributes | block_attribute(block) | m.flags(per_row=per_row))
        other = amax if columnwise_amax is None else columnwise_amax
        return (ScaledValue(values[0], values[1], format, amax, recipe),
                ScaledValue(values[2], values[3], format, other, recipe))

    def dequantize(self, value: ScaledValue, element: str = "bf16", *,
                   per_row: bool = False) -> Value:
        """fp4.dequantize: the R x K numbers that a quantized matrix with linear scales stands
        for, rounded once to `element`: "bf16", "f16" or "f32". With `per_row`, its amax is [R]."""
        value = m.check(value, "'value'", ScaledValue)
        operands = {"data": value.data, "scales": value.scales, "amax": value.amax}
        used, types = self._operands(operands)
        kind = Type(value.data.shape, m.one_of(element, "element", ELEMENTS))
        attributes = {"format": f"#fp4.format<{value.format}>", **m.recipe("recipe", value.recipe),
                      **m.flags(per_row=per_row)}
        amax = f" amax {used['amax']}" if "amax" in used else ""
        return self._one(f"fp4.dequantize {used['data']} scaled {used['scales']}{amax}"
                         f"{m.dictionary(attributes)} : {m.function_type(types, [kind])}", kind)

    #===--- Layouts of scales ----------------------------------------------===#

    def swizzle_scales(self, value: ScaledValue, *, offsets: Value | None = None) -> ScaledValue:
        """fp4.swizzle_scales: the same matrix with its scales in the layout tiled_128x4. With
        `offsets` they are the list of tiles of groups of rows that `quantize` gives."""
        return self._move_scales("swizzle_scales", value, "tiled_128x4", offsets)

    def unswizzle_scales(self, value: ScaledValue) -> ScaledValue:
        """fp4.unswizzle_scales: the same matrix with linear scales."""
        return self._move_scales("unswizzle_scales", value, "linear")

    #===--- Products -------------------------------------------------------===#

    def matmul_alpha(self, lhs: ScaledValue, rhs: ScaledValue, *,
                     per_group: bool = False) -> Value:
        """fp4.matmul_alpha: the tensor scales of two NVFP4 operands as one factor of their matmul:
        a scalar, or M x 1 or 1 x N where one of them has an amax for each row; with `per_group`
        [G], where both have one for each of G groups."""
        for value, what in ((lhs, "'lhs'"), (rhs, "'rhs'")):
            if m.check(value, what, ScaledValue).amax is None:
                raise UsageError(f"{what} must have an amax, but has none",
                                 "a matmul of operands without tensor scales has no alpha")
        assert lhs.amax and rhs.amax
        used, types = self._operands({"lhs": lhs.amax, "rhs": rhs.amax})
        rows, columns = lhs.amax.shape, rhs.amax.shape
        kind = Type((rows[0], 1) if rows else (1, columns[0]) if columns else (), "f32")
        if per_group:
            kind = Type(rows, "f32")
        attributes = (m.flags(per_group=per_group) | m.recipe("lhs_recipe", lhs.recipe)
                      | m.recipe("rhs_recipe", rhs.recipe))
        return self._one(f"fp4.matmul_alpha {used['lhs']}, {used['rhs']}"
                         f"{m.dictionary(attributes)} : {', '.join(map(m.tensor, types))} -> "
                         f"{m.tensor(kind)}", kind)

    def matmul(self, lhs: ScaledValue, rhs: ScaledValue, *, alpha: Value | None = None,
               element: str = "bf16", epilogue: Iterable[str] = (),
               groups: Sequence[int] | None = None, offsets: Value | None = None) -> Value:
        """fp4.matmul: M x N = M x K times the transpose of N x K. The operation fp4.scaled
        makes an operand of data and scales.

        Args:
            lhs, rhs: in the same format, or in mxfp8 and mxfp4 formats in any pair, with scales in
                the layout tiled_128x4.
            alpha: multiplies the fp32 sums; `matmul_alpha` makes it of the amaxes of the operands.
            element: of the result, "bf16", "f16" or "f32".
            epilogue: steps in fp32 after alpha, such as "relu", in their order.
            groups, offsets: of a matmul of each group of rows of lhs, as of `quantize`; rhs has
                as many rows for each group, and alpha is a scalar or one number for each.

        Raises:
            UsageError: operands with tensor scales and no alpha, or scales that are not tiled.
        """
        check_gemm(lhs, rhs, alpha)
        used, types = self._operands({"alpha": alpha, "offsets": offsets})
        (left, left_type), (right, right_type) = self._bundle(lhs, "lhs"), self._bundle(rhs, "rhs")
        kind = Type((matrix_shape(lhs.data, "'lhs'")[0],
                     matrix_shape(rhs.data, "'rhs'")[0] // (count_of(groups, offsets) or 1)),
                    m.one_of(element, "element", ELEMENTS))
        attributes = {}
        if groups is not None:
            rows = ", ".join(str(rows) for rows in groups)
            attributes["work"] = f"#fp4.work<groups = [{rows}]>"
        if steps := m.words(epilogue, "'epilogue'"):
            attributes["epilogue"] = f"#fp4.epilogue<{steps}>"
        factor = f" alpha {used['alpha']}" if "alpha" in used else ""
        factor += self._offsets(offsets)[0]
        listed = ", ".join([left_type, right_type, *map(m.tensor, types)])
        return self._one(f"fp4.matmul {left}, {right}{factor}{m.dictionary(attributes)} : "
                         f"({listed}) -> {m.tensor(kind)}", kind)

    def blockscaled_matmul(self, *operands: ScaledValue, **options: Any) -> Value:
        """The former name of `matmul`, which the next release does not have."""
        warnings.warn("FunctionBuilder.blockscaled_matmul is now FunctionBuilder.matmul",
                      DeprecationWarning, stacklevel=2)
        return self.matmul(*operands, **options)

    #===--- Text -----------------------------------------------------------===#

    def text(self, *, locations: bool = False) -> str:
        """The function as MLIR text. A UsageError where it does not return."""
        if self._results is None:
            raise UsageError(f"function '{self.name}' must return before it is compiled",
                             "end it with returns(...)")

        def at(place: _Place) -> str:
            return f" loc({m.quote(place[0], 'a path')}:{place[1]}:1)" if locations else ""

        arguments = ",\n    ".join(
            text + at(place) for text, place in zip(self._arguments.values(), self._places))
        results = f"\n    -> ({', '.join(self._results)})" if self._results else ""
        lines = "".join(f"  {line}{at(place)}\n" for line, place in self._lines)
        symbol = self.name if m.identifier(self.name) else m.quote(self.name, "a name")
        return f"func.func @{symbol}({arguments}){results} {{\n{lines}}}{at(self._place)}\n"

    #===--- Pieces ---------------------------------------------------------===#

    def _check_open(self) -> None:
        if self._results is not None:
            raise UsageError(f"function '{self.name}' has returned: nothing can be added")

    def _value(self, kind: Type, name: str = "") -> Value:
        """A new value. In the text it has `name` where that is possible."""
        if not m.identifier(name) or name in self._names:
            name = str(len(self._names))
        self._names.add(name)
        return Value(self, f"%{name}", kind)

    def _emit(self, operation: str, kinds: Sequence[Type]) -> list[Value]:
        self._check_open()
        values = [self._value(kind) for kind in kinds]
        names = ", ".join(value.name for value in values)
        self._lines.append((f"{names} = {operation}", _caller()))
        return values

    def _one(self, operation: str, kind: Type) -> Value:
        return self._emit(operation, [kind])[0]

    def _use(self, value: object, what: str) -> str:
        """The name of an operand."""
        found = m.check(value, what, Value)
        if found.function is not self:
            raise UsageError(f"{what} must be a value of function '{self.name}', but is one of "
                             f"'{found.function.name}'")
        return found.name

    def _operands(self, values: dict[str, Value | None]) -> tuple[dict[str, str], list[Type]]:
        """The names of those operands that are there, and their types."""
        given = {what: value for what, value in values.items() if value is not None}
        return ({what: self._use(value, f"'{what}'") for what, value in given.items()},
                [value.type for value in given.values()])

    def _bundle(self, value: ScaledValue, name: str) -> tuple[str, str]:
        """Adds fp4.scaled of data and scales; returns the name of its value and its type."""
        data = self._use(value.data, f"'{name}'")
        scales = self._use(value.scales, f"'{name} scales'")
        kind = (f"!fp4.scaled<{value.format}, {m.tensor(value.data.type)}, "
                f"{m.tensor(value.scales.type)}>")
        self._check_open()
        result = self._value(value.data.type)
        self._lines.append((f"{result.name} = fp4.scaled {data}, {scales} : {kind}", _caller()))
        return result.name, kind

    def _quantize(self, input: Value, format: str, recipe: str | None, layout: str,
                  operands: dict[str, Value | None], shapes: Sequence[tuple[int, int]],
                  attributes: dict[str, str], groups: Sequence[int] | None = None,
                  columnwise: bool = False) -> list[Value]:
        """Returns data and scales of each of the outputs, which have `shapes`. If the rows of the
        input are in `groups`, tiled scales are a list of tiles."""
        facts = find_format(format)
        used, types = self._operands({"input": input, **operands})
        head = {"format": f"#fp4.format<{format}>",
                **m.recipe("recipe", facts.recipe if recipe is None else recipe)}
        if "rng" in used:
            head["rounding"] = "#fp4.rounding<stochastic>"
        kinds = []
        for rows, columns in shapes:
            blocks = -1 if columns < 0 else -(-columns // facts.block)
            tiled = m.one_of(layout, "layout", SCALE_LAYOUTS) != "linear"
            sizes = (rows, blocks)
            if groups is not None and tiled:
                ofs = [(rows, -(-of // facts.block)) if columnwise else (of, blocks)
                       for of in groups]
                sizes = (128 * sum(-(-r // 128) * -(-b // 4) for r, b in ofs), 4)
            kinds += [Type((rows, columns), facts.data), Type(sizes, facts.scales, layout)]
        clauses = "".join(f" {what} {name}" for what, name in used.items() if what != "input")
        return self._emit(f"fp4.quantize {used['input']}{clauses}"
                          f"{m.dictionary(head | attributes)} : {m.function_type(types, kinds)}",
                          kinds)

    def _move_scales(self, name: str, value: ScaledValue, layout: str,
                     offsets: Value | None = None) -> ScaledValue:
        scales = m.check(value, "'value'", ScaledValue).scales
        used = self._use(scales, "'scales'")
        kind = dataclasses.replace(scales.type, layout=layout)
        clause, type = self._offsets(offsets)
        if offsets is not None:
            rows, blocks = matrix_shape(scales, "'scales'")
            tiles = sum(-(-of // 128) for of in rows_of_tiles(None, offsets, rows) or ())
            kind = dataclasses.replace(kind, shape=(128 * tiles * -(-blocks // 4), 4))
        moved = self._one(f"fp4.{name} {used}{clause} : {m.tensor(scales.type)}{type} -> "
                          f"{m.tensor(kind)}", kind)
        return dataclasses.replace(value, scales=moved)

    def _offsets(self, offsets: Value | None) -> tuple[str, str]:
        """The clause of the operand 'offsets', and its type behind that of another operand."""
        if offsets is None:
            return "", ""
        used = self._use(offsets, "'offsets'")
        return f" offsets {used}", f", {m.tensor(offsets.type)}"


def _caller() -> _Place:
    """The file and the line outside of this package that called it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
