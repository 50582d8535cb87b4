/* What a program's plan computed: its output as fp32. */
#ifndef OUTPUT_CUH
#define OUTPUT_CUH

#include "inputs.cuh"

/* The output (B,S,D) as fp32, zeros in padding. */
static std::vector<float> download(const plan_element *y)
{
    const long hidden = (long)HEADS * HEAD_SIZE;
    std::vector<plan_element> host((size_t)(BATCH * SEQ_LEN * hidden));
    std::vector<float> real(host.size());
    check(cudaMemcpy(host.data(), y, host.size() * sizeof(plan_element), cudaMemcpyDeviceToHost),
          "cannot copy from the GPU");
    for (int row : token_rows())
        std::copy_n(&host[(size_t)(row * hidden)], hidden, &real[(size_t)(row * hidden)]);
    return real;
}

/* The mean square of the real tokens' output: equal for all plans up to rounding. */
static double mean_square(const std::vector<float> &y)
{
    const long hidden = (long)HEADS * HEAD_SIZE;
    std::vector<int> rows = token_rows();
    double sum = 0;
    for (int row : rows)
        for (long i = 0; i < hidden; i++) {
            double value = y[(size_t)(row * hidden + i)];
            sum += value * value;
        }
    return sum / ((double)rows.size() * (double)hidden);
}

#endif
