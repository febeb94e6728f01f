// C++ programs with C's complex types (an extension of GCC and Clang) and with std::complex:
// reductions and scans take both, by overloads.
#include <complex>

#include <pshmem.h>

#include "tests/openshmem/suite.h"

#ifdef WEFT_HAS_C_COMPLEX
namespace {

__extension__ typedef double _Complex c_double;
__extension__ typedef float _Complex c_float;

template <typename Complex>
Complex make(int real, int imaginary) {
  return Complex(static_cast<typename Complex::value_type>(real),
                 static_cast<typename Complex::value_type>(imaginary));
}

template <>
c_double make<c_double>(int real, int imaginary) {
  c_double value;
  __real__ value = real;
  __imag__ value = imaginary;
  return value;
}

template <>
c_float make<c_float>(int real, int imaginary) {
  c_float value;
  __real__ value = static_cast<float>(real);
  __imag__ value = static_cast<float>(imaginary);
  return value;
}

// PE k gives k + 1 + 2i. `sum`: what PEs 0 to last - 1 make.
template <typename Complex>
Complex sum(int last) {
  return make<Complex>(last * (last + 1) / 2, 2 * last);
}

template <typename Complex, typename Call>
void expect(Complex* dest, Complex* source, const Complex& expected, Call call) {
  *source = make<Complex>(suite_me + 1, 2);
  *dest = make<Complex>(-1, -1);
  shmem_barrier_all();
  EXPECT_EQUAL(0, call(SHMEM_TEAM_WORLD, dest, source, 1));
  EXPECT(*dest == expected);
  shmem_barrier_all();
}

template <typename Complex>
Complex product() {
  Complex result = make<Complex>(1, 2);
  for (int pe = 1; pe < suite_pe_count; ++pe) {
    result *= make<Complex>(pe + 1, 2);
  }
  return result;
}

// `make_sums` is called with the work array of an active set.
template <typename Complex, typename Call>
void expect_on_set(const Complex& expected, Call call) {
  auto* dest = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  auto* source = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  auto* work =
      static_cast<Complex*>(suite_symmetric(SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(Complex)));
  auto* sync = static_cast<long*>(suite_symmetric(SHMEM_REDUCE_SYNC_SIZE * sizeof(long)));
  *source = make<Complex>(suite_me + 1, 2);
  shmem_barrier_all();
  call(dest, source, 1, 0, 0, suite_pe_count, work, sync);
  EXPECT(*dest == expected);
  shmem_barrier_all();
}

// A function by its name, with whatever overloads it has.
#define WEFT_CALL(NAME) [](auto... arguments) { return NAME(arguments...); }

template <typename Complex, typename Sum, typename Inscan, typename Exscan>
void expect_sums(Sum sum_reduce, Inscan inscan, Exscan exscan) {
  auto* dest = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  auto* source = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  expect(dest, source, sum<Complex>(suite_pe_count), sum_reduce);
  expect(dest, source, sum<Complex>(suite_me + 1), inscan);
  expect(dest, source, sum<Complex>(suite_me), exscan);
}

template <typename Complex, typename Prod>
void expect_product(Prod prod_reduce) {
  auto* dest = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  auto* source = static_cast<Complex*>(suite_symmetric(sizeof(Complex)));
  expect(dest, source, product<Complex>(), prod_reduce);
}

template <typename Complex>
void expect_doubles() {
  expect_sums<Complex>(WEFT_CALL(shmem_complexd_sum_reduce), WEFT_CALL(shmem_complexd_sum_inscan),
                       WEFT_CALL(shmem_complexd_sum_exscan));
  expect_sums<Complex>(WEFT_CALL(pshmem_complexd_sum_reduce), WEFT_CALL(pshmem_complexd_sum_inscan),
                       WEFT_CALL(pshmem_complexd_sum_exscan));
  expect_product<Complex>(WEFT_CALL(shmem_complexd_prod_reduce));
  expect_on_set<Complex>(sum<Complex>(suite_pe_count), WEFT_CALL(shmem_complexd_sum_to_all));
  expect_on_set<Complex>(product<Complex>(), WEFT_CALL(shmem_complexd_prod_to_all));
}

template <typename Complex>
void expect_floats() {
  expect_sums<Complex>(WEFT_CALL(shmem_complexf_sum_reduce), WEFT_CALL(shmem_complexf_sum_inscan),
                       WEFT_CALL(shmem_complexf_sum_exscan));
  expect_product<Complex>(WEFT_CALL(shmem_complexf_prod_reduce));
  expect_on_set<Complex>(sum<Complex>(suite_pe_count), WEFT_CALL(shmem_complexf_sum_to_all));
  expect_on_set<Complex>(product<Complex>(), WEFT_CALL(shmem_complexf_prod_to_all));
}

}  // namespace

TEST(c_complex_in_cpp, "9.9.9 reductions and scans in C++ of double _Complex and float _Complex") {
  expect_doubles<c_double>();
  expect_floats<c_float>();
}

TEST(std_complex_in_cpp, "9.9.9 reductions and scans in C++ of std::complex") {
  expect_doubles<std::complex<double>>();
  expect_floats<std::complex<float>>();
}
#endif
