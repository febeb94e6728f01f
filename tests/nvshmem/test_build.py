"""Programs are built against the prefix as their build systems do it: g++ and gcc, nvcc with and without -rdc, CMake with
aliases, torch's flags; and libnvshmem_host exports the names that those who open it look up."""
import re
import subprocess
import sys

import pytest

from nvshmem_runs import HOST_MEMORY, PROGRAMS, RING, run, well

TORCH = ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"]
NVCC = ["-std=c++17", "-arch=sm_90", "-Xcompiler=-Wall"]


@pytest.mark.parametrize("language, standard", [("c", "-std=c11"), ("c++", "-std=c++14"), ("c++", "-std=c++20")])
@pytest.mark.parametrize("with_cuda", [False, True])
def test_headers_compile_without_nvcc(prefix, cuda_include, tmp_path, language, standard, with_cuda):
    if with_cuda and not cuda_include:
        pytest.skip("no CUDA headers")
    text = "".join(f"#include <{name}>\n" for name in ("nvshmem.h", "nvshmemx.h", "nvshmem_host.h", "nvshmem_version.h", "non_abi/nvshmem_version.h",
                                                       "host/nvshmem_api.h", "host/nvshmemx_api.h"))
    source = tmp_path / ("x.c" if language == "c" else "x.cpp")
    source.write_text(text + "int main(void) { nvshmem_init(); return nvshmem_my_pe() + NVSHMEM_TEAM_WORLD; }\n")
    cuda = ["-isystem", cuda_include] if with_cuda else []
    well("gcc" if language == "c" else "g++", standard, "-Wall", "-Wextra", "-Werror", *cuda, f"-I{prefix}/include", "-c", source, "-o", tmp_path / "x.o")


MORE = """
#include <nvshmem.h>
#include <nvshmemx.h>
#include <non_abi/nvshmem_build_options.h>
#include <non_abi/nvshmemx_error.h>
static int fails(int status) {
  if (status == NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED) NVSHMEMI_ERROR_EXIT("gone");
  if (status != NVSHMEMX_SUCCESS) NVSHMEMI_ERROR_PRINT("status %d of %s", status, "a call");
  return status;
}
int main(void) {
  static const long constant[4] = {0};
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  attr.args.uid_args.myrank = 0;
  if (attr.args.uid_args.myrank != 0) return 3;
#ifdef WITH_CUDA
  CUdeviceptr pointer = 0; /* of <cuda.h>, which nvshmem.h brings */
  (void)pointer;
#endif
  if (NO_CALL) (void)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, constant);
  return fails(NVSHMEMX_ERROR_INVALID_VALUE) - 1;
}
"""


@pytest.mark.parametrize("language, standard", [("c", "-std=c11"), ("c++", "-std=c++17")])
@pytest.mark.parametrize("with_cuda", [False, True])
def test_the_names_that_programs_take_from_its_headers_besides_the_documented_ones(prefix, cuda_include, tmp_path, language, standard, with_cuda):
    """NVSHMEM's performance tests print by NVSHMEMI_ERROR_PRINT."""
    if with_cuda and not cuda_include:
        pytest.skip("no CUDA headers")
    source = tmp_path / ("x.c" if language == "c" else "x.cpp")
    source.write_text(MORE)
    cuda = ["-isystem", cuda_include, "-DWITH_CUDA"] if with_cuda else []
    well("gcc" if language == "c" else "g++", standard, "-Wall", "-Wextra", "-Werror", "-DNO_CALL=0", *cuda, f"-I{prefix}/include", source, f"-L{prefix}/lib",
         "-lnvshmem_host", f"-Wl,-rpath,{prefix}/lib", "-o", tmp_path / "x")
    done = run(tmp_path / "x")
    assert done.returncode == 0 and f"{source}:" in done.stderr and done.stderr.endswith("status 1 of a call\n"), done.stderr


def test_kernels_name_cooperative_groups_as_nvshmems_header_does(prefix, nvcc, tmp_path):
    (tmp_path / "x.cu").write_text("""
        #include <nvshmem.h>
        __global__ void kernel(int* count) {
          cg::thread_block block = cg::this_thread_block();
          block.sync();
          if (block.thread_rank() == 0) *count = nvshmem_n_pes();
        }
        int fails(int status) { NVSHMEMI_ERROR_PRINT("status %d", status); return status; }
        """)
    well(nvcc, *NVCC, f"-I{prefix}/include", "-c", tmp_path / "x.cu", "-o", tmp_path / "x.o", timeout=300)


def test_a_weak_redeclaration_of_a_host_function_is_accepted(prefix, tmp_path):
    (tmp_path / "x.cpp").write_text('#include <nvshmem.h>\nextern "C" void nvshmem_init() __attribute__((weak));\nint main() { return nvshmem_init == nullptr; }\n')
    well("g++", f"-I{prefix}/include", "-c", tmp_path / "x.cpp", "-o", tmp_path / "x.o")


def test_the_old_library_serves_by_its_path_too(prefix, tmp_path):
    """As build systems that look for libnvshmem.a name it, without -L."""
    (tmp_path / "x.cpp").write_text("#include <nvshmem.h>\nint main() { return nvshmemx_init_status(); }\n")
    well("g++", "-std=c++17", f"-I{prefix}/include", tmp_path / "x.cpp", prefix / "lib" / "libnvshmem.a", f"-Wl,-rpath,{prefix}/lib", "-o", tmp_path / "x")
    assert run(tmp_path / "x").returncode == 0


@pytest.mark.parametrize("flags", [[], TORCH, ["-DNVSHMEM_HOSTLIB_ONLY", "-DNO_KERNEL"]], ids=["plain", "torch", "hostlib_only"])
def test_a_file_with_kernels_compiles(prefix, nvcc, tmp_path, flags):
    well(nvcc, *NVCC, *flags, f"-I{prefix}/include", "-c", RING, "-o", tmp_path / "ring.o", timeout=300)


@pytest.mark.parametrize("flags", [[], ["-rdc=true"]], ids=["plain", "rdc"])
def test_a_file_may_have_kernels_for_some_architectures_alone(prefix, nvcc, tmp_path, flags):
    both = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in (80, 90)]
    well(nvcc, "-std=c++17", *both, *TORCH, *flags, f"-I{prefix}/include", "-c", PROGRAMS / "old_architecture.cu", "-o", tmp_path / "x.o", timeout=300)


def test_with_rdc_a_file_takes_few_bytes_of_the_constant_memory_that_all_share(prefix, nvcc, tmp_path):
    well(nvcc, *NVCC, "-rdc=true", f"-I{prefix}/include", "-cubin", RING, "-o", tmp_path / "ring.cubin", timeout=300)
    sizes = [int(line.split()[5], 16) for line in well("readelf", "-SW", tmp_path / "ring.cubin").replace("[ ", "[").splitlines() if ".nv.constant3" in line]
    assert sizes and sum(sizes) <= 128


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_a_kernel_of_1024_threads_starts_without_launch_bounds(prefix, nvcc, tmp_path, architecture):
    """A thread of such a block has 64 registers; the linker says what a kernel takes."""
    well(nvcc, "-std=c++17", f"-arch=sm_{architecture}", "-rdc=true", f"-I{prefix}/include", "-dc", PROGRAMS / "full_blocks.cu",
         "-o", tmp_path / "full_blocks.o", timeout=300, NVCC_APPEND_FLAGS="")
    linked = run(nvcc, f"-arch=sm_{architecture}", "-dlink", "-Xnvlink", "--verbose", tmp_path / "full_blocks.o", "-o", tmp_path / "linked.o",
                 f"-L{prefix}/lib", "-lnvshmem_device")
    registers = [int(number) for number in re.findall(r"full_blocks.*':\n.*used (\d+) registers", linked.stdout + linked.stderr)]
    assert len(registers) == 1 and registers[0] <= 64, linked.stdout + linked.stderr


def test_a_kernel_of_1024_threads_with_launch_bounds_may_reduce(prefix, nvcc, tmp_path):
    """The linker refuses a function that takes more registers than such a kernel has."""
    (tmp_path / "reduce.cu").write_text("""
        #include <nvshmem.h>
        #include <nvshmemx.h>
        __global__ void __launch_bounds__(1024) reduce(float* dest, float* source, size_t count) {
          nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, dest, source, count);
          nvshmemx_float_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, dest, source, count);
          nvshmemx_float_broadcast_block(NVSHMEM_TEAM_WORLD, dest, source, count, 0);
        }
        """)
    well(nvcc, *NVCC, "-O2", "-rdc=true", f"-I{prefix}/include", "-dc", tmp_path / "reduce.cu", "-o", tmp_path / "reduce.o", timeout=300,
         NVCC_APPEND_FLAGS="")
    well(nvcc, "-arch=sm_90", "-dlink", tmp_path / "reduce.o", "-o", tmp_path / "linked.o", f"-L{prefix}/lib", "-lnvshmem_device")


@pytest.mark.parametrize("flags", [["-O0"], ["-O2", "-rdc=true"]], ids=["unoptimized", "rdc"])
def test_each_file_with_kernels_takes_the_state_itself(prefix, nvcc, tmp_path, flags):
    """As many upload functions as files, also where the compiler inlines nothing."""
    (tmp_path / "library.cpp").write_text("""
        #include <weft/device.h>
        #include <set>
        std::set<void*>& uploads() { static std::set<void*> all; return all; }
        extern "C" void weft_device_module_register(weft_device_module* module, unsigned long) {
          uploads().insert(reinterpret_cast<void*>(module->upload));
        }
        extern "C" void weft_device_module_unregister(weft_device_module*) {}
        int main() { return static_cast<int>(uploads().size()); }
        """)
    kernels = [tmp_path / "a.cu", tmp_path / "b.cu"]
    for file in kernels:
        file.write_text(f"#include <weft/device.cuh>\n__global__ void kernel_{file.stem}(int* pe) {{ *pe = weft::device::pe(); }}\n")
    well(nvcc, *NVCC, *flags, f"-I{prefix}/include", *kernels, tmp_path / "library.cpp", "-o", tmp_path / "program", timeout=300)
    assert run(tmp_path / "program").returncode == 2


def test_a_module_that_is_loaded_by_the_program_names_its_state(prefix, nvcc, tmp_path):
    well(nvcc, *NVCC, "-rdc=true", "-DWEFT_DEVICE_LOADED_MODULE", f"-I{prefix}/include", "-cubin", RING, "-o", tmp_path / "ring.cubin", timeout=300)
    lines = [line for line in well("readelf", "-sW", tmp_path / "ring.cubin").splitlines() if "weft_device_state_of_module" in line]
    assert len(lines) == 1 and " GLOBAL " in lines[0]


def test_the_plain_line_of_the_documentation_builds_a_program(prefix, nvcc, tmp_path):
    well(nvcc, "-rdc=true", "-ccbin", "g++", "-gencode=arch=compute_90,code=sm_90", f"-I{prefix}/include", RING, "-o", tmp_path / "ring",
         f"-L{prefix}/lib", "-lnvshmem_host", "-lnvshmem_device", timeout=300)
    needed = well("readelf", "-d", tmp_path / "ring")
    assert "[libweft_nvshmem_host.so.3]" in needed and "[libweft.so" not in needed


def test_by_file_names_and_the_old_library_name(prefix, nvcc, ring_object, tmp_path):
    well(nvcc, "-arch=sm_90", "-dlink", ring_object, "-o", tmp_path / "dlink.o", f"-L{prefix}/lib", "-lnvshmem_device")
    for libraries in (["-l:libnvshmem_host.so.3", "-l:libnvshmem_device.a"], ["-lnvshmem"]):
        well("g++", ring_object, tmp_path / "dlink.o", "-o", tmp_path / "ring", f"-L{prefix}/lib", *libraries,
             f"-L{prefix.parents[0]}/lib", "-L/usr/local/cuda/lib64", "-lcudadevrt", "-lcudart_static", "-lrt", "-ldl", "-lpthread")


@pytest.mark.parametrize("variable", ["NVSHMEM_ROOT", "NVSHMEM_DIR", "CMAKE_PREFIX_PATH"])
def test_cmake_finds_it_and_its_targets_can_be_aliased(prefix, tmp_path, variable):
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(NVSHMEM 3.0 REQUIRED)
if(NOT NVSHMEM_VERSION VERSION_EQUAL 3.6.5 OR NOT EXISTS ${NVSHMEM_INCLUDE_DIR}/nvshmem.h OR NOT IS_DIRECTORY ${NVSHMEM_LIB_DIR} OR NOT EXISTS ${NVSHMEM_BIN_DIR}/nvshmrun)
  message(FATAL_ERROR "variables")
endif()
add_library(their::host ALIAS nvshmem::nvshmem_host)
add_library(their::device ALIAS nvshmem::nvshmem_device)
add_executable(tour """ + str(PROGRAMS / "host_tour.cpp") + """)
target_link_libraries(tour PRIVATE their::host their::device nvshmem::nvshmem_bootstrap_uid)
""")
    well("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-D{variable}={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    well("cmake", "--build", tmp_path / "build")
    assert well(tmp_path / "build" / "tour", NVSHMEM_HEAP_KIND="SYSMEM", NVSHMEM_SYMMETRIC_SIZE="8M") == "all well\n"


def test_cmake_compiles_kernels_and_links_their_device_code(prefix, nvcc, tmp_path):
    """As pplx-kernels and NVSHMEM's own examples."""
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(kernels LANGUAGES CXX CUDA)
find_package(NVSHMEM REQUIRED HINTS ${NVSHMEM_PREFIX}/lib/cmake/nvshmem)
add_library(kernels SHARED """ + str(RING) + """)
set_target_properties(kernels PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON CUDA_ARCHITECTURES 90a-real)
target_include_directories(kernels PRIVATE ${NVSHMEM_INCLUDE_DIR})
target_link_libraries(kernels PRIVATE nvshmem::nvshmem_host nvshmem::nvshmem_device)
""")
    well("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DNVSHMEM_PREFIX={prefix}", f"-DCMAKE_CUDA_COMPILER={nvcc}")
    well("cmake", "--build", tmp_path / "build", timeout=300)
    assert "[libweft_nvshmem_host.so.3]" in well("readelf", "-d", tmp_path / "build" / "libkernels.so")


def test_cmake_without_a_package_finds_libraries_and_the_version(prefix, tmp_path):
    """As GROMACS, TVM and cuDecomp: by file names, and the version from a header."""
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_path(NVSHMEM_ROOT_FOUND NAMES include/nvshmem.h HINTS ${THEIRS} REQUIRED NO_DEFAULT_PATH)
find_path(NVSHMEM_OLD NAMES libnvshmem.a HINTS ${THEIRS} PATH_SUFFIXES lib REQUIRED NO_DEFAULT_PATH)
find_library(NVSHMEM_HOST NAMES nvshmem_host HINTS ${THEIRS}/lib REQUIRED NO_DEFAULT_PATH)
find_library(NVSHMEM_DEVICE NAMES nvshmem_device HINTS ${THEIRS}/lib REQUIRED NO_DEFAULT_PATH)
file(GLOB_RECURSE headers ${THEIRS}/include/nvshmem_version.h ${THEIRS}/include/non_abi/nvshmem_version.h)
set(found "")
foreach(header ${headers})
  file(STRINGS ${header} lines REGEX "NVSHMEM_VENDOR_(MAJOR|MINOR|PATCH)_VERSION +[0-9]+")
  list(APPEND found ${lines})
endforeach()
list(LENGTH found count)
if(count LESS 3)
  message(FATAL_ERROR "no version: ${found}")
endif()
add_executable(tour """ + str(PROGRAMS / "host_tour.cpp") + """)
target_include_directories(tour PRIVATE ${NVSHMEM_ROOT_FOUND}/include)
target_link_libraries(tour PRIVATE ${NVSHMEM_HOST} ${NVSHMEM_DEVICE})
""")
    well("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DTHEIRS={prefix}")
    well("cmake", "--build", tmp_path / "build")
    assert well(tmp_path / "build" / "tour", **HOST_MEMORY) == "all well\n"


@pytest.mark.parametrize("names", [["-l:libnvshmem_host.so", "-l:libnvshmem_device.a"], ["-l:libnvshmem_host.so.3", "-lnvshmem_device"]])
def test_a_setup_py_builds_a_module_with_kernels(prefix, nvcc, ring_object, tmp_path, names):
    """As DeepEP: objects with relocatable device code, a device link of its own, and a shared library with the folder in it."""
    linked, module = tmp_path / "dlink.o", tmp_path / "module.so"
    well(nvcc, "-arch=sm_90", "-dlink", "-Xcompiler=-fPIC", ring_object, "-o", linked, f"-L{prefix}/lib", "-lnvshmem_device")
    well("g++", "-shared", ring_object, linked, "-o", module, f"-L{prefix}/lib", *names, f"-Wl,-rpath,{prefix}/lib", "-L/usr/local/cuda/lib64",
         "-lcudadevrt", "-lcudart_static", "-lrt", "-ldl", "-lpthread")
    assert str(prefix / "lib") in well("readelf", "-d", module)
    text = "import ctypes, sys; ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL); print(ctypes.CDLL(sys.argv[2]).nvshmemx_init_status())"
    assert well(sys.executable, "-c", text, module, "libweft_nvshmem_host.so.3") == "0\n"
    assert well(sys.executable, "-c", text, module, "libnvshmem_host.so.3", LD_LIBRARY_PATH=str(prefix / "lib")) == "0\n"


def test_a_newer_version_is_not_claimed(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nfind_package(NVSHMEM 3.7 REQUIRED)\n")
    assert run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DNVSHMEM_ROOT={prefix}").returncode != 0


def test_the_library_exports_what_is_listed_and_nothing_of_its_own(prefix, bin_dir):
    lines = well("nm", "--dynamic", "--defined-only", "--format=posix", prefix / "lib" / "libnvshmem_host.so.3").splitlines()
    names = {line.split()[0].split("@")[0] for line in lines} - {"WEFT_NVSHMEM_3"}
    table = (bin_dir.parent / "generated" / "src" / "nvshmem" / "filter.c").read_text()
    listed = set(re.findall(r"^void (\w+)\(void\)", table, re.MULTILINE))
    assert listed > {"weft_nvshmem_module_register", "nvshmem_malloc"} and listed <= names
    assert names - listed == {"nvshmemid_hostlib_init_attr", "nvshmemid_hostlib_finalize", "nvshmemid_init_status"}


def test_nothing_of_it_is_where_compilers_look_by_themselves(prefix, project):
    assert not list((project / "include").glob("nvshmem*.h")) and "nvshmem" in prefix.name


@pytest.mark.parametrize("options, arguments", [
    (["-np", "2"], ["-n", "2"]), (["-n", "2", "-ppn", "2"], ["-n", "2"]), (["-n", "1", "-genvlist", "HOME,PATH"], ["-n", "1"]),
    (["-n", "1", "-bind-to", "none", "-genvall"], ["-n", "1"])])
def test_nvshmrun_takes_hydras_options(prefix, options, arguments):
    done = run(prefix / "bin" / "nvshmrun", *options, "sh", "-c", "echo $WEFT_PE_COUNT")
    assert done.returncode == 0 and done.stdout.split() == [arguments[1]] * int(arguments[1]), done.stderr
    assert ("is ignored" in done.stderr) == ("-bind-to" in options)


def test_nvshmrun_sets_variables_and_refuses_what_it_does_not_know(prefix):
    assert well(prefix / "bin" / "nvshmrun.hydra", "-n", "1", "-genv", "A", "b c", "sh", "-c", "echo $A") == "b c\n"
    done = run(prefix / "bin" / "nvshmrun", "-no-such-option", "true")
    assert done.returncode == 2 and "unknown" in done.stderr
    for words in (["-n"], ["-n", "2"], ["-genv", "A"], ["-no-such-option"]):
        done = run(prefix / "bin" / "nvshmrun", *words)
        assert done.returncode == 2 and "nvshmrun" in done.stderr and "unbound" not in done.stderr, words


def test_nvshmem_info_names_the_versions_and_the_documented_variables(prefix, project):
    text = well(prefix / "bin" / "nvshmem-info")
    assert text.startswith("Weft, NVSHMEM v3.6.5\n")
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("NVSHMEM_")]
    document = (project / "docs" / "NVSHMEM.md").read_text()
    assert all(f"`{name}`" in document for name in rows)


def test_weft_nvshmem_points_build_systems_at_it(bin_dir, prefix):
    text = well(bin_dir / "weft-nvshmem", "--env")
    assert f"export NVSHMEM_HOME={prefix}\n" in text and "QUDA_NVSHMEM_HOME" in text
    assert subprocess.run([bin_dir / "weft-nvshmem"], capture_output=True).returncode == 2
