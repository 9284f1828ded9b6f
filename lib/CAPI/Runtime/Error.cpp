//===- Error.cpp - fp4-c/Error.h -------------------------------------------===//

#include "Wrap.h"

using namespace fp4;

static_assert(FP4_ERROR_MISMATCH == int(ErrorKind::Mismatch) &&
              FP4_ERROR_USAGE == int(ErrorKind::Usage) &&
              FP4_ERROR_COMPILE == int(ErrorKind::Compile) &&
              FP4_ERROR_DEVICE == int(ErrorKind::Device) &&
              FP4_ERROR_SIMULATION == int(ErrorKind::Simulation) &&
              FP4_ERROR_HAZARD == int(ErrorKind::Hazard) &&
              FP4_ERROR_INTERNAL == int(ErrorKind::Internal));

fp4_error *capi::wrap(Error error) { return new fp4_error{std::move(error)}; }
fp4_error *capi::wrap(const Status &status) { return status ? nullptr : wrap(status.error()); }
fp4_error *capi::usage(std::string message, std::string note) {
  return wrap(Error{ErrorKind::Usage, std::move(message), std::move(note)});
}

fp4_error_kind fp4_error_get_kind(const fp4_error *error) {
  return static_cast<fp4_error_kind>(error->error.kind);
}
const char *fp4_error_get_message(const fp4_error *error) { return error->error.message.c_str(); }
const char *fp4_error_get_note(const fp4_error *error) { return error->error.note.c_str(); }
void fp4_error_destroy(fp4_error *error) { delete error; }

const char *fp4_version(void) { return FP4_VERSION; }
