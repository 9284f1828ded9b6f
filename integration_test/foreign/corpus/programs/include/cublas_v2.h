// The type of cuBLAS that headers of extensions name; kernels of the corpus call nothing of it.
typedef struct cublasContext *cublasHandle_t;
