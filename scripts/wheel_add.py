"""wheel_add.py WHEEL FOLDER FILE...: adds files to a folder of a wheel, and lists them in its RECORD."""

import base64
import hashlib
import pathlib
import sys
import zipfile


def main():
    wheel, folder, files = pathlib.Path(sys.argv[1]), sys.argv[2], [pathlib.Path(name) for name in sys.argv[3:]]
    rewritten = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(rewritten, "w", zipfile.ZIP_DEFLATED) as new:
        added = {f"{folder}/{file.name}": file.read_bytes() for file in files}
        (record,) = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        for item in old.infolist():
            if item.filename != record and item.filename not in added:
                new.writestr(item, old.read(item.filename))
        lines = [line for line in old.read(record).decode().splitlines() if line.partition(",")[0] not in added]
        for name, content in added.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
            new.writestr(name, content)
        new.writestr(record, "\n".join(lines) + "\n")
    rewritten.replace(wheel)


if __name__ == "__main__":
    main()
