// The header of cuBLASLt, which FlashInfer's norms include and call nothing of.
#include "cublas_v2.h"
