def Pipe_@Class@ : Pipe_Op<"@name@"> {
  let summary = "@summary@";
  let description = [{
    @Summary@
    The operation is a marker of scripts/new: it has a count and no effect, any role may
    execute it, and PipeToNVVM does not lower it yet. One producer, its test.

    Example:
    ```mlir
    pipe.@name@ 4
    ```
  }];
  let arguments = (ins I64Attr:$count);
  let assemblyFormat = "$count attr-dict";
  let hasVerifier = 1;
}
