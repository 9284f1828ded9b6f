// The part of PyTorch's C interface that a build of PyTorch for CPUs lacks or answers for the CPU: an extension
// that is linked with this file finds its tensors on device 0 and launches its kernels on the default stream.
#include <cstdlib>
#include <cstring>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

extern "C" {

const char *cudaGetErrorString(int32_t error);

AOTITorchError aoti_torch_get_device_type(AtenTensorHandle, int32_t *type) {
  *type = aoti_torch_device_type_cuda();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_device_index(AtenTensorHandle, int32_t *index) {
  *index = 0;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_current_device_index(int32_t *index) {
  *index = 0;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_create_device_guard(int32_t, DeviceGuardHandle *guard) {
  *guard = nullptr;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle) { return AOTI_TORCH_SUCCESS; }

AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle, int32_t) { return AOTI_TORCH_SUCCESS; }

AOTITorchError aoti_torch_get_current_cuda_stream(int32_t, void **stream) {
  *stream = nullptr;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError torch_c10_cuda_check_msg(int32_t error, const char *, const char *, uint32_t, bool,
                                        char **message) {
  *message = error ? strdup(cudaGetErrorString(error)) : nullptr;
  return AOTI_TORCH_SUCCESS;
}

void torch_c10_cuda_free_error_msg(char *message) { std::free(message); }
}
