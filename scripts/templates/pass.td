def @Class@ : Pass<"@flag@"> {
  let summary = "@summary@";
  let description = [{
    **Why.** @Summary@
    The pass is a scaffold of scripts/new: it counts operations and changes nothing.

    **Precondition.** None.

    **Postcondition.** The program is what it was. A remark at the operation that the pass
    runs on has the number of operations of dialect @dialect@ in it.

    ```mlir
@example@
    ```
  }];
}
