//===- Compiler.cpp - fp4-c/Compiler.h -------------------------------------===//

#include "fp4-c/Compiler.h"

#include "../Runtime/Wrap.h"
#include "fp4/Compiler/Compiler.h"

#include <sstream>

using namespace fp4;
using namespace fp4::capi;

struct fp4_compiler {
  fp4_compiler(CompilerOptions options, const fp4_compiler_options &c)
      : diagnostic(c.diagnostic), context(c.context), compiler(withStream(std::move(options))) {}

  std::ostringstream diagnostics;
  fp4_diagnostic_function diagnostic;
  void *context;
  Compiler compiler;
  std::string text;                ///< last text that a function returned
  std::vector<KernelCode> kernels; ///< kernels to which fp4_compiler_get_kernel points

  CompilerOptions withStream(CompilerOptions options) {
    options.diagnostics = &diagnostics;
    return options;
  }

  /// Hands diagnostics to the caller, or puts them into the message of the error.
  fp4_error *report(Status status) {
    std::string said = diagnostics.str();
    diagnostics.str("");
    if (diagnostic && !said.empty())
      diagnostic(context, said.c_str());
    else if (!status && !said.empty())
      status.error().message += "\n" + said;
    return wrap(status);
  }
};

static const char *keep(fp4_compiler *compiler, std::string text) {
  compiler->text = std::move(text);
  return compiler->text.c_str();
}

fp4_error *fp4_compiler_create(const fp4_compiler_options *options, fp4_compiler **compiler) {
  return guarded({{compiler, "compiler"}, sized(options)}, [&] {
    const fp4_compiler_options c = optionsOf(options);
    CompilerOptions cpp;
    cpp.target = stringOf(c.target, "sm_100a");
    cpp.ptxas = stringOf(c.ptxas);
    cpp.remarks = c.remarks != 0;
    std::optional<PdlLaunches> pdl = parsePdlLaunches(stringOf(c.pdl, "chosen"));
    if (!pdl)
      return usage("unknown pdl '" + stringOf(c.pdl) + "'", "PDL is none, chosen or all");
    cpp.pdl = *pdl;
    cpp.device = stringOf(c.device);
    *compiler = new fp4_compiler(std::move(cpp), c);
    return static_cast<fp4_error *>(nullptr);
  });
}

void fp4_compiler_destroy(fp4_compiler *compiler) { delete compiler; }

fp4_error *fp4_compiler_load_text(fp4_compiler *compiler, const char *text, const char *name) {
  return guarded({{compiler, "compiler"}, {text, "text"}}, [&] {
    return compiler->report(
        compiler->compiler.loadText(stringOf(text), stringOf(name, "program.mlir")));
  });
}

fp4_error *fp4_compiler_load_file(fp4_compiler *compiler, const char *path) {
  return guarded({{compiler, "compiler"}, {path, "path"}},
                 [&] { return compiler->report(compiler->compiler.loadFile(stringOf(path))); });
}

fp4_error *fp4_compiler_specialize(fp4_compiler *compiler, const char *name, int64_t size) {
  return guarded({{compiler, "compiler"}, {name, "name"}}, [&] {
    return compiler->report(compiler->compiler.specialize({{stringOf(name), size}}));
  });
}

fp4_error *fp4_compiler_compile_to(fp4_compiler *compiler, const char *phase) {
  return guarded({{compiler, "compiler"}, {phase, "phase"}}, [&] {
    std::optional<Phase> parsed = parsePhase(stringOf(phase));
    if (!parsed)
      return usage("unknown phase '" + stringOf(phase) + "'", "the phases are " + phaseNames());
    return compiler->report(compiler->compiler.compileTo(*parsed));
  });
}

const char *fp4_compiler_get_ir(fp4_compiler *compiler) {
  return compiler ? keep(compiler, compiler->compiler.ir()) : "";
}

const char *fp4_compiler_get_manifest(fp4_compiler *compiler) {
  return compiler ? keep(compiler, compiler->compiler.manifest()) : "";
}

size_t fp4_compiler_get_num_kernels(fp4_compiler *compiler) {
  if (!compiler)
    return 0;
  if (compiler->kernels.empty())
    compiler->kernels = compiler->compiler.kernels();
  return compiler->kernels.size();
}

fp4_error *fp4_compiler_get_kernel(fp4_compiler *compiler, size_t index, fp4_kernel_code *code) {
  return guarded({{compiler, "compiler"}, {code, "code"}}, [&] {
    const size_t count = fp4_compiler_get_num_kernels(compiler);
    if (index >= count)
      return usage("the index of a kernel must be below " + std::to_string(count) + ", but got " +
                   std::to_string(index));
    const KernelCode &kernel = compiler->kernels[index];
    *code = {kernel.module.c_str(), kernel.ptx.c_str(), kernel.ptx.size(),
             kernel.cubin.empty() ? nullptr : kernel.cubin.data(), kernel.cubin.size()};
    return static_cast<fp4_error *>(nullptr);
  });
}

fp4_error *fp4_compiler_write_library(fp4_compiler *compiler, const char *path) {
  return guarded({{compiler, "compiler"}, {path, "path"}},
                 [&] { return compiler->report(compiler->compiler.writeLibrary(stringOf(path))); });
}

fp4_error *fp4_compiler_get_program(fp4_compiler *compiler, fp4_program **program) {
  return guarded({{compiler, "compiler"}, {program, "program"}}, [&] {
    *program = nullptr;
    std::string manifest = compiler->compiler.manifest();
    auto jit = compiler->compiler.jit();
    if (!jit)
      return compiler->report(tl::unexpected<Error>(jit.error()));
    auto resolve = [code = std::shared_ptr<JitProgram>(std::move(*jit))](
                       const std::string &symbol) { return code->lookup(symbol); };
    std::shared_ptr<const Program> created;
    FP4_C_ASSIGN(created, Program::create(std::move(manifest), resolve));
    *program = new fp4_program{std::move(created)};
    return compiler->report({});
  });
}
