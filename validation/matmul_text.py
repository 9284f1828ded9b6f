"""The text of fp4.matmul, and of fp4.scaled for its operands."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Side:
    """An operand: data, and scales where it has some, each with its type. `format` is that of the
    scales."""

    data: str
    type: str
    scales: str = ""
    scales_type: str = ""
    format: str = ""

    @property
    def name(self) -> str:
        return f"{self.data}_scaled" if self.scales else self.data

    @property
    def bundle(self) -> str:
        return f"!fp4.scaled<{self.format}, {self.type}, {self.scales_type}>" if self.scales else self.type

    def lines(self) -> list[str]:
        made = f"  {self.name} = fp4.scaled {self.data}, {self.scales} : {self.bundle}"
        return [made] if self.scales else []


def matmul(names: str, results: str, lhs: Side, rhs: Side, *, rhs2: Side | None = None,
           alpha: str = "", alpha_type: str = "", offsets: str = "", offsets_type: str = "",
           inputs: tuple = (), region: str = "", work: tuple = (), attributes: tuple = ()) -> list[str]:
    """Lines that define `names`, of types `results`: a type, or several in parentheses. `alpha`, if
    there is one, is that of both GEMMs of a dual GEMM. `inputs` are pairs of a name and a type, and
    `region` is what stands in braces behind them."""
    sides = [lhs, rhs] + ([rhs2] if rhs2 else [])
    text = f"{lhs.name}, {rhs.name}" + (f" with {rhs2.name}" if rhs2 else "")
    types = [side.bundle for side in sides]
    if alpha:
        text += f" alpha {alpha}" + (f" alpha2 {alpha}" if rhs2 else "")
        types += [alpha_type] * (len(sides) - 1)
    if offsets:
        text, types = text + f" offsets {offsets}", types + [offsets_type]
    if region:
        text += f" epilogue({', '.join(name for name, _ in inputs)}) {{{region}}}"
        types += [kind for _, kind in inputs]
    written = [f"work = #fp4.work<{', '.join(work)}>"] * bool(work) + list(attributes)
    text += f" {{{', '.join(written)}}}" * bool(written)
    bundles = dict.fromkeys(line for side in sides for line in side.lines())
    return [*bundles, f"  {names} = fp4.matmul {text}", f"      : ({', '.join(types)}) -> {results}"]
