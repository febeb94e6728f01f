"""python -m weft: prints what a build script asks for, one line for each option, in their order."""

import argparse
import sys

import weft

ANSWERS = {
    "--version": (lambda: weft.__version__, "the version"),
    "--prefix": (weft.prefix, "the prefix: bin, include, lib and share are there"),
    "--cmake-dir": (weft.cmake_dir, "for CMake: -Dweft_DIR=..."),
    "--pkg-config-dir": (weft.pkg_config_dir, "for PKG_CONFIG_PATH"),
    "--include-dir": (weft.include_dir, "the headers: -I..."),
    "--lib-dir": (weft.lib_dir, "the library: -L... -Wl,-rpath,... -lweft"),
    "--library": (weft.library, "the file to open with dlopen or ctypes"),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m weft", description="Where Weft's wheel put things.")
    for option, (_, text) in ANSWERS.items():
        parser.add_argument(option, dest="asked", action="append_const", const=option, help=text)
    asked = parser.parse_args(arguments).asked
    if not asked:
        parser.error(f"nothing asked; give one of {', '.join(ANSWERS)}")
    for option in asked:
        print(ANSWERS[option][0]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
