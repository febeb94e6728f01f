"""Translates CUDA C++ into C++ for the emulated GPU: what a compiler for CPUs does not read becomes calls.

    asm volatile("OPCODE ..." : outputs : inputs : clobbers)   ::weft_emulated::ptx::OPCODE(outputs, inputs)
    kernel<<<grid, block, bytes, stream>>>(arguments)          ::weft_emulated::Launcher(grid, ...)(kernel, arguments)
    extern __shared__ T name[]                                 T* const name = (this block's dynamic memory)
    threadIdx                                                  ::weft_emulated::threadIdx()

The name of an instruction is its opcode with what else is fixed in the text: "bar.sync 15, %0" is bar_sync_15. ptx.hpp has them;
one that is not there is an error of the compiler. Line numbers stay.
"""

import argparse
import os
import re
import sys

ASM = re.compile(r"\b(?:asm(?:\s+volatile)?|WEFT_MOE_BULK)\s*\(")
LAUNCH = re.compile(r"(\b(?!return\b|if\b|else\b)[A-Za-z_][\w:.]*(?:<[^<>;(){}]*>)?)\s*<<<(.*?)>>>\s*\(", re.DOTALL)
DYNAMIC = re.compile(r"extern __shared__\s*(?:__align__\([^)]*\))?\s*([\w:]+)\s+(\w+)\[\];")
ALIGNED = re.compile(r"__shared__\s+(alignas\([^)]*\))")
# Not members of structures, which have these names too.
INDEX = re.compile(r"(?<![.>\w])(threadIdx|blockIdx|blockDim|gridDim)\b")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def end_of_parentheses(text, start):
    """The place behind the parenthesis that closes the one before `start`."""
    depth = 1
    at = start
    while depth:
        if text[at] == '"':
            at = STRING.match(text, at).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def split(text, separator):
    """The parts of `text` between separators outside of strings and brackets."""
    parts = [""]
    depth = 0
    at = 0
    while at < len(text):
        if text[at] == '"':
            end = STRING.match(text, at).end()
            parts[-1] += text[at:end]
            at = end
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if text[at] == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += text[at]
        at += 1
    return parts


def name_of(code):
    """The name of an instruction, or of several that belong together."""
    words = []
    for line in code.replace("{", " ").replace("}", " ").split(";"):
        found = re.findall(r"[A-Za-z_][\w.:]*|%%\w+|%\d+|-?\d+", line)
        if not found or found[0] == "reg" or line.strip().startswith("."):
            continue
        words.append(found[0])
        words += [word.strip("%") for word in found[1:] if word.startswith("%%") or word.lstrip("-").isdigit()]
    return re.sub(r"[.:]+", "_", "_".join(words))


def translated_asm(body):
    parts = split(body, ":")
    code = "".join(STRING.findall(parts[0]))
    operands = []
    for part in parts[1:3]:
        for operand in split(part, ","):
            if operand.strip():
                operands.append(operand[STRING.search(operand).end():].strip())
    return f"::weft_emulated::ptx::{name_of(code)}({', '.join(operands)})"


def translated_launch(match):
    """All up to the arguments. In braces these need the kernel's own types, and else they find those of a template."""
    kernel, configuration = match.groups()
    braces = match.string[match.end():].lstrip().startswith("{")
    call = f"+{kernel}" if braces else f"[=](auto... arguments) {{ {kernel}(arguments...); }}"
    is_last = match.string[match.end():].lstrip().startswith(")")
    return f"::weft_emulated::Launcher({configuration})({call}" + ("" if is_last else ", ")


def translate(text):
    out = ""
    at = 0
    for match in ASM.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if match.start() < at or line.lstrip().startswith(("#", "//")):
            continue
        end = end_of_parentheses(text, match.end())
        out += text[at:match.start()] + translated_asm(text[match.end():end - 1])
        out += "\n" * text.count("\n", match.start(), end)
        at = end
    out += text[at:]
    out = LAUNCH.sub(translated_launch, out)
    out = DYNAMIC.sub(r"\1* const \2 = ::weft_emulated::dynamic_memory;", out)
    out = ALIGNED.sub(r"\1 __shared__", out)
    out = INDEX.sub(r"::weft_emulated::\1()", out)
    # As a macro it would change what the headers of the standard library say.
    return out.replace("__noinline__", "__attribute__((noinline))")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, help="the folder that names of files are relative to")
    parser.add_argument("--out", required=True, help="where they go, by the same names; .cu becomes .cu.cpp")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    for name in options.files:
        relative = os.path.relpath(name, options.root)
        path = os.path.join(options.out, relative + (".cpp" if relative.endswith(".cu") else ""))
        with open(name, encoding="utf-8") as file:
            text = f'#line 1 "{name}"\n' + translate(file.read())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
