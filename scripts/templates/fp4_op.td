def Fp4_@Class@ : Fp4_Op<"@name@", [SameOperandsAndResultType]> {
  let summary = "@summary@";
  let description = [{
    ```
    result[i, j] = input[i, j]
    ```

    @Summary@
    The formula above is a placeholder of scripts/new, and no kernel computes the
    operation yet.

    | operand | element type | shape                      |
    |---------|--------------|----------------------------|
    | input   | any          | M x K, M may be dynamic    |
    | result  | as input     | as input                   |

    Example:
    ```mlir
    %same = fp4.@name@ %matrix : tensor<?x1024xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}
